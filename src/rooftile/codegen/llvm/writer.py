"""Writes LLVM text: SSA names, counted loops, and operations hoisted to where their operands are.

LLVM's own IR passes are not run (they cost twice the code generation and gained nothing), so what
should be shared or moved out of a loop is shared and moved here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from rooftile.core.affine import Affine, affine
from rooftile.native.target import Target


@dataclass
class Scope:
    """The body of a loop: `pre` holds what was hoisted in front of it."""

    pre: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    shared: dict[object, str] = field(default_factory=dict)


class Writer:
    """One function's text under construction."""

    def __init__(self, target: Target, checked: bool = False) -> None:
        """`checked`: addresses are compared with bounds, so they may lie outside a buffer."""
        self.target = target
        self._step = "getelementptr" if checked else "getelementptr inbounds"
        self.scopes = [Scope()]
        self.depth: dict[str, int] = {}
        self.ranges: dict[str, tuple[int, int]] = {}
        self.declarations: set[str] = set()
        self.sixteen: dict[tuple[str, str], str] = {}
        """The 16 bits that a register of type f16 or bf16 was widened from."""
        self._names = 0
        self._loops = 0

    # -- instructions

    def fresh(self, depth: int | None = None) -> str:
        """A new SSA name that lives at `depth` loops (default: here)."""
        self._names += 1
        name = f"%v.{self._names}"
        self.depth[name] = len(self.scopes) - 1 if depth is None else depth
        return name

    def op(self, text: str) -> str:
        """Append an instruction; returns the name of its result."""
        name = self.fresh()
        self.scopes[-1].lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """Append an instruction without a result."""
        self.scopes[-1].lines.append(f"  {text}")

    def splice(self, lines: Sequence[str]) -> None:
        """Append whole lines, which may end the block and begin another."""
        self.scopes[-1].lines += lines

    def hoisted(self, text: str, operands: Sequence[str]) -> str:
        """A pure instruction placed in the outermost scope where its operands exist, once."""
        depth = max((self.depth.get(name, 0) for name in operands), default=0)
        for scope in self.scopes[: depth + 1]:
            if text in scope.shared:
                return scope.shared[text]
        name = self.fresh(depth)
        inside = depth + 1 < len(self.scopes)
        lines = self.scopes[depth + 1].pre if inside else self.scopes[depth].lines
        lines.append(f"  {name} = {text}")
        self.scopes[depth].shared[text] = name
        return name

    def call(self, result: str, function: str, *args: str) -> str:
        """Call a declared function; args as "type value"."""
        kinds = ", ".join(_type_of(arg) for arg in args)
        self.declarations.add(f"declare {result} @{function}({kinds})")
        text = f"call {result} @{function}({', '.join(args)})"
        if result == "void":
            self.do(text)
            return ""
        return self.op(text)

    # -- integers

    def _order(self, term: tuple[str, int]) -> tuple[int, str]:
        """Outer counters first; arguments of the function are outermost."""
        return self.depth.get(term[0], 0), term[0]

    def integer(self, value: Affine) -> str:
        """An affine expression in loop counters as an i64 operand."""
        total = ""
        for name, coef in sorted(value.terms, key=self._order):
            scaled = name if coef == 1 else self.hoisted(f"mul nsw i64 {name}, {coef}", [name])
            total = (
                self.hoisted(f"add nsw i64 {total}, {scaled}", [total, scaled])
                if total
                else (scaled)
            )
        if not total:
            return str(value.const)
        return (
            self.hoisted(f"add nsw i64 {total}, {value.const}", [total]) if value.const else (total)
        )

    def smaller(self, a: str, b: str) -> str:
        """The smaller of two i64 operands."""
        self.declarations.add("declare i64 @llvm.smin.i64(i64, i64)")
        return self.op(f"call i64 @llvm.smin.i64(i64 {a}, i64 {b})")

    def pointer(self, base: str, offset: Affine) -> str:
        """`base` plus a byte offset that is affine in loop counters, outer counters first."""
        pointer = base
        for name, coef in sorted(offset.terms, key=self._order):
            step = name if coef == 1 else self.hoisted(f"mul nsw i64 {name}, {coef}", [name])
            pointer = self.hoisted(f"{self._step} i8, ptr {pointer}, i64 {step}", [pointer, step])
        if offset.const:
            return self.op(f"{self._step} i8, ptr {pointer}, i64 {offset.const}")
        return pointer

    def range(self, value: Affine) -> tuple[int, int] | None:
        """The least and greatest value of an affine expression; None where a counter is unknown."""
        low = high = value.const
        for name, coef in value.terms:
            if name not in self.ranges:
                return None
            first, last = (bound * coef for bound in self.ranges[name])
            low, high = low + min(first, last), high + max(first, last)
        return low, high

    # -- control

    def loop(
        self,
        start: int | str,
        stop: int | str,
        body: Callable[[Affine, list[str]], list[str]],
        carried: Sequence[tuple[str, str]] = (),
    ) -> list[str]:
        """`for i in range(start, stop)`; `carried` are (type, initial value), `body(i, values)`
        returns their next values. Returns the last. Integer bounds with one trip need no loop.
        """
        initial = [value for _, value in carried]
        static = isinstance(start, int) and isinstance(stop, int)
        if isinstance(start, int) and isinstance(stop, int):
            if stop <= start:
                return initial
            if stop == start + 1:
                return body(affine(start), initial)
        self._loops += 1
        number = self._loops
        counter = f"%i.{number}"
        self.scopes.append(Scope())
        self.depth[counter] = len(self.scopes) - 1
        if isinstance(start, int) and isinstance(stop, int):
            self.ranges[counter] = (start, stop - 1)
        phis = [self.fresh() for _ in carried]
        after = body(affine(counter), phis)
        scope = self.scopes.pop()
        lines = self.scopes[-1].lines
        lines += [f"  br label %enter.{number}", f"enter.{number}:", *scope.pre]
        if static:
            lines.append(f"  br label %loop.{number}")
        else:
            enter = self.fresh()
            lines.append(f"  {enter} = icmp slt i64 {start}, {stop}")
            lines.append(f"  br i1 {enter}, label %loop.{number}, label %exit.{number}")
        following = f"{counter}.next"
        lines.append(f"loop.{number}:")
        lines.append(
            f"  {counter} = phi i64 [{start}, %enter.{number}], [{following}, %next.{number}]"
        )
        for phi, (kind, value), last in zip(phis, carried, after, strict=True):
            lines.append(
                f"  {phi} = phi {kind} [{value}, %enter.{number}], [{last}, %next.{number}]"
            )
        lines += scope.lines
        lines += [f"  br label %next.{number}", f"next.{number}:"]
        lines.append(f"  {following} = add nsw i64 {counter}, 1")
        lines.append(f"  {counter}.more = icmp slt i64 {following}, {stop}")
        lines.append(f"  br i1 {counter}.more, label %loop.{number}, label %exit.{number}")
        lines.append(f"exit.{number}:")
        if static:
            for name in after:
                self.depth[name] = len(self.scopes) - 1
            return list(after)
        results = [self.fresh() for _ in carried]
        for name, (kind, value), last in zip(results, carried, after, strict=True):
            lines.append(
                f"  {name} = phi {kind} [{value}, %enter.{number}], [{last}, %next.{number}]"
            )
        return results

    def repeat(
        self,
        most: int,
        carried: Sequence[tuple[str, str]],
        body: Callable[[list[str]], tuple[list[str], str]],
    ) -> list[str]:
        """Run `body` up to `most` times. `carried` are (type, initial value); `body(values)` gives
        their next values and a typed integer that is 0 where they are the last. Returns these."""
        if most == 0:
            return [value for _, value in carried]
        self._loops += 1
        number = self._loops
        counter = f"%i.{number}"
        self.scopes.append(Scope())
        phis = [self.fresh() for _ in carried]
        after, more = body(phis)
        kind = _type_of(more)
        scope = self.scopes.pop()
        phi_lines = [
            f"  {phi} = phi {type_} [{value}, %enter.{number}], [{last}, %next.{number}]"
            for phi, (type_, value), last in zip(phis, carried, after, strict=True)
        ]
        self.scopes[-1].lines += [
            f"  br label %enter.{number}",
            f"enter.{number}:",
            *scope.pre,
            f"  br label %loop.{number}",
            f"loop.{number}:",
            f"  {counter} = phi i64 [1, %enter.{number}], [{counter}.next, %next.{number}]",
            *phi_lines,
            *scope.lines,
            f"  br label %next.{number}",
            f"next.{number}:",
            f"  {counter}.next = add nsw i64 {counter}, 1",
            f"  {counter}.left = icmp slt i64 {counter}, {most}",
            # One branch: behind a second one LLVM would compute `more`, with all that it needs.
            f"  {counter}.go = select i1 {counter}.left, {more}, {kind} 0",
            f"  {counter}.more = icmp ne {kind} {counter}.go, 0",
            f"  br i1 {counter}.more, label %loop.{number}, label %exit.{number}",
            f"exit.{number}:",
        ]
        for name in after:
            self.depth[name] = len(self.scopes) - 1
        return after

    def when(self, condition: str, body: Callable[[], None]) -> None:
        """Run `body` where the i1 `condition` holds."""
        self._loops += 1
        number = self._loops
        self.scopes.append(Scope())
        body()
        scope = self.scopes.pop()
        lines = self.scopes[-1].lines
        lines += [f"  br label %enter.{number}", f"enter.{number}:", *scope.pre]
        lines += [
            f"  br i1 {condition}, label %loop.{number}, label %exit.{number}",
            f"loop.{number}:",
        ]
        lines += [*scope.lines, f"  br label %exit.{number}", f"exit.{number}:"]


def number(value: float, dtype: str) -> str:
    """A scalar literal of LLVM text."""
    if dtype in ("f32", "f16", "bf16"):
        return _hex(float(np.float32(value)))
    if dtype == "f64":
        return _hex(float(value))
    if dtype == "bool":
        return "true" if value else "false"
    return str(int(value))


def _hex(value: float) -> str:
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def _type_of(arg: str) -> str:
    return arg[: arg.index(">") + 1] if arg.startswith("<") else arg.split(" ")[0]
