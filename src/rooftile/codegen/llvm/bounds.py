"""Checked code: the memory that an access must stay in, and the text of one check.

Who forms an address knows its `Room`; `access.py` (kernels) and `entry.py` (programs) check
there. `rooftile.native.bounds` reads what a check reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rooftile.core.affine import Dim
from rooftile.native.bounds import OUTSIDE, record_symbol

_RECORD = "{ ptr, i64, i64, i64 }"


@dataclass(frozen=True)
class Room:
    """Memory that belongs to one buffer or kept tile: cells of `itemsize` bytes in a `shape`, from
    byte `start` behind the pointer `base`. `name` is for people."""

    name: str
    base: str
    shape: tuple[Dim, ...]
    itemsize: int
    start: int = 0


@dataclass(frozen=True)
class Access:
    """An access of `nbytes` bytes at `offset` of memory that has `extent` bytes (i64 operands).
    `what` says whose access, and of which buffer."""

    what: str
    offset: int | str
    nbytes: int
    extent: int | str


class Guard:
    """Writes the checks of a module, and the record of `function` that they report to."""

    def __init__(self, function: str) -> None:
        self.function = function
        self._what: dict[str, str] = {}
        self._declared: set[str] = set()
        self._checks = 0

    def check(self, access: Access, starts: int | str, code: int = OUTSIDE) -> list[str]:
        """Lines that go on where the offset of an access is below `starts`, the number of offsets
        at which it may start; else they report it and return `code`."""
        self._checks += 1
        name = f"bounds.{self._checks}"
        test = f"  %{name} = icmp ult i64 {access.offset}, {starts}"
        return [test, *self._branch(name, access, code)]

    def check_lanes(self, access: Access, outside: str, width: int) -> list[str]:
        """Lines that go on where no bit of `outside` is set, an integer with one bit a lane; else
        they report the first such lane. `access` is that of a lane, its offset that of lane 0."""
        self._checks += 1
        name = f"bounds.{self._checks}"
        test = f"  %{name} = icmp eq i{width} {outside}, 0"
        first = [
            f"  %{name}.lane = call i{width} @llvm.cttz.i{width}(i{width} {outside}, i1 true)",
            f"  %{name}.wide = zext i{width} %{name}.lane to i64",
            f"  %{name}.ahead = mul i64 %{name}.wide, {access.nbytes}",
            f"  %{name}.at = add i64 {access.offset}, %{name}.ahead",
        ]
        self._declared.add(f"declare i{width} @llvm.cttz.i{width}(i{width}, i1)")
        return [test, *self._branch(name, replace(access, offset=f"%{name}.at"), OUTSIDE, first)]

    def _branch(
        self, name: str, access: Access, code: int, before: Sequence[str] = ()
    ) -> list[str]:
        what = self._what.setdefault(access.what, f'@"{self.function}.what.{len(self._what)}"')
        args = f"i64 {access.offset}, i64 {access.nbytes}, i64 {access.extent}"
        return [
            f"  br i1 %{name}, label %{name}.inside, label %{name}.outside",
            f"{name}.outside:",
            *before,
            f'  call void @"{self.function}.outside"(ptr {what}, {args})',
            f"  ret i32 {code}",
            f"{name}.inside:",
        ]

    def module(self) -> list[str]:
        """Lines of the module, beside its functions: the record, and how it is filled in."""
        record = f'@"{record_symbol(self.function)}"'
        lines = [f"{record} = global {_RECORD} zeroinitializer"]
        lines += [f"{name} = private constant {_string(what)}" for what, name in self._what.items()]
        args = ("ptr %what", "i64 %offset", "i64 %nbytes", "i64 %extent")
        lines.append(
            f'define internal void @"{self.function}.outside"({", ".join(args)}) noinline {{'
        )
        for place, arg in enumerate(args):
            field = f"getelementptr {_RECORD}, ptr {record}, i64 0, i32 {place}"
            lines += [f"  %field.{place} = {field}", f"  store {arg}, ptr %field.{place}"]
        return [*lines, "  ret void", "}", *sorted(self._declared)]


def starts(extent: int, nbytes: int) -> int:
    """How many offsets of memory an access of `nbytes` bytes may start at."""
    return max(0, extent - nbytes + 1)


def _string(text: str) -> str:
    data = text.encode() + b"\0"
    plain = "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}" for byte in data
    )
    return f'[{len(data)} x i8] c"{plain}"'
