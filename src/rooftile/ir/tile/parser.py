"""The parser of the tile IR's text. Nesting is by indentation; `#` starts a comment.

It checks the grammar only; `rooftile.ir.tile.verify` checks what the text means.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rooftile.core.affine import Affine, Dim, affine, dim
from rooftile.core.dtype import DTYPES
from rooftile.ir.tile.lexer import Cursor, Line, split
from rooftile.ir.tile.records import (
    Axis,
    Buf,
    Carry,
    Cast,
    Const,
    Dot,
    Extent,
    For,
    Iota,
    Iterate,
    Kernel,
    Last,
    Let,
    Load,
    Map,
    Part,
    Reduce,
    Ref,
    Rename,
    Stmt,
    Store,
    Tile,
)
from rooftile.ir.tile.scalar import SCALARS

REDUCTIONS = ("sum", "prod", "max", "min")


def parse(text: str) -> Kernel:
    """The kernel that a text describes; InvalidIR names the line that breaks the grammar."""
    lines = split(text)
    first = Cursor(lines[0])
    first.expect("kernel")
    name = first.name("the kernel's name")
    first.end()
    bufs: list[Buf] = []
    axes: dict[str, tuple[Axis, ...]] = {"whole": (), "grid": ()}
    at = 1
    while at < len(lines):
        cursor = Cursor(lines[at])
        if cursor.peek() in ("memory", "scratch"):
            bufs.append(_buffer(cursor))
        elif cursor.peek() in axes:
            which = cursor.take()
            axes[which] = _axes(cursor)
        else:
            break
        cursor.end()
        at += 1
    block = _Block(lines, at)
    body, following = block.read(lines[at].indent if at < len(lines) else 0)
    if following:
        raise following[0].cursor.error("`next` belongs at the end of a loop with that carry")
    if block.at < len(lines):
        raise Cursor(lines[block.at]).error("this line is indented less than the kernel's body")
    return Kernel(name, tuple(bufs), axes["grid"], axes["whole"], body)


@dataclass(frozen=True)
class _Next:
    name: str
    expr: Tile
    cursor: Cursor


class _Block:
    """Reads statements from `at` on, one nesting level a call."""

    def __init__(self, lines: list[Line], at: int) -> None:
        self.lines = lines
        self.at = at

    def read(self, indent: int) -> tuple[tuple[Stmt, ...], list[_Next]]:
        body: list[Stmt] = []
        following: list[_Next] = []
        while self.at < len(self.lines) and self.lines[self.at].indent >= indent:
            cursor = Cursor(self.lines[self.at])
            if self.lines[self.at].indent > indent:
                raise cursor.error("this line is indented more than the one above it")
            self.at += 1
            if cursor.peek() == "next":
                following.append(_next(cursor))
            elif following:
                raise cursor.error("no statement may follow `next` in a loop")
            elif cursor.peek() == "for":
                body.append(self.loop(cursor, indent))
            else:
                body.append(_let_or_store(cursor))
        return tuple(body), following

    def loop(self, cursor: Cursor, indent: int) -> For:
        cursor.expect("for")
        axis = _axis(cursor)
        inits: dict[str, Tile] = {}
        while cursor.accept("carry"):
            name = cursor.name("a carry's name")
            cursor.expect("=")
            inits[name] = _expression(cursor)
        cursor.end()
        body: tuple[Stmt, ...] = ()
        following: list[_Next] = []
        if self.at < len(self.lines) and self.lines[self.at].indent > indent:
            body, following = self.read(self.lines[self.at].indent)
        nexts = {entry.name: entry.expr for entry in following}
        for entry in following:
            if entry.name not in inits or len(nexts) != len(following):
                raise entry.cursor.error(f"carry {entry.name} is unknown or has two `next`")
        for name in inits:
            if name not in nexts:
                raise cursor.error(f"carry {name} has no `next {name} = ...` in the loop")
        return For(axis, body, tuple(Carry(n, init, nexts[n]) for n, init in inits.items()))


def _next(cursor: Cursor) -> _Next:
    cursor.expect("next")
    name = cursor.name("a carry's name")
    cursor.expect("=")
    expr = _expression(cursor)
    cursor.end()
    return _Next(name, expr, cursor)


def _let_or_store(cursor: Cursor) -> Stmt:
    name = cursor.name("a statement")
    if cursor.accept("="):
        expr = _expression(cursor)
        cursor.end()
        return Let(name, expr)
    cursor.expect("[")
    index = _index(cursor)
    cursor.expect(":=")
    expr = _expression(cursor)
    combine = cursor.name("add, mul, max or min") if cursor.accept("combine") else None
    cursor.end()
    return Store(name, index, expr, combine)


def _buffer(cursor: Cursor) -> Buf:
    space: Literal["memory", "scratch"] = "memory" if cursor.take() == "memory" else "scratch"
    name = cursor.name("a buffer's name")
    cursor.expect(":")
    dtype = _dtype(cursor)
    cursor.expect("[")
    shape: list[Dim] = []
    while not cursor.accept("]"):
        shape.append(dim(_affine(cursor)))
        if not cursor.accept(","):
            cursor.expect("]")
            break
    layout = halo = None
    if cursor.accept("layout"):
        parts = []
        while cursor.peek() not in ("", "halo", "most"):
            parts.append(_layout_part(cursor))
        layout = tuple(parts)
    if cursor.accept("halo"):
        cells = []
        while cursor.peek() not in ("", "most"):
            low = cursor.integer()
            cursor.expect(":")
            cells.append((low, cursor.integer()))
        halo = tuple(cells)
    most = cursor.integer() if cursor.accept("most") else None
    return Buf(name, tuple(shape), dtype, space, layout, halo, most)


def _layout_part(cursor: Cursor) -> tuple[int, int, Part]:
    which = cursor.integer()
    if cursor.accept("/"):
        return which, cursor.integer(), "div"
    if cursor.accept("%"):
        return which, cursor.integer(), "mod"
    return which, 1, "all"


def _axes(cursor: Cursor) -> tuple[Axis, ...]:
    axes = [_axis(cursor)]
    while cursor.accept(","):
        axes.append(_axis(cursor))
    return tuple(axes)


def _axis(cursor: Cursor) -> Axis:
    name = cursor.name("an axis")
    cursor.expect("<")
    extent = dim(_affine(cursor))
    tile: Extent = "whole"
    if cursor.accept("tile"):
        tile = cursor.integer()
    elif cursor.accept("point"):
        tile = "point"
    within = cursor.name("the outer axis") if cursor.accept("within") else None
    return Axis(name, extent, tile, within)


def _affine(cursor: Cursor) -> Affine:
    total = affine(0)
    sign = -1 if cursor.accept("-") else 1
    while True:
        total = total + _term(cursor) * sign
        if cursor.accept("+"):
            sign = 1
        elif cursor.accept("-"):
            sign = -1
        else:
            return total


def _term(cursor: Cursor) -> Affine:
    if not cursor.is_number():
        return affine(cursor.name("an axis, a symbol or an integer"))
    count = cursor.integer()
    return affine(cursor.name("a name after *")) * count if cursor.accept("*") else affine(count)


def _index(cursor: Cursor) -> tuple[Affine | Tile, ...]:
    """Index components up to and with the closing bracket."""
    parts: list[Affine | Tile] = []
    while not cursor.accept("]"):
        parts.append(_expression(cursor) if cursor.accept("@") else _affine(cursor))
        if not cursor.accept(","):
            cursor.expect("]")
            break
    return tuple(parts)


def _dtype(cursor: Cursor) -> str:
    name = cursor.name("an element type")
    if name not in DTYPES:
        raise cursor.error(f"no element type {name}; one of {', '.join(DTYPES)}")
    return name


def _expression(cursor: Cursor) -> Tile:
    if cursor.is_number() or cursor.peek() in ("-", "inf", "nan"):
        return _const(cursor)
    name = cursor.name("an expression")
    if cursor.accept("["):
        index = _index(cursor)
        return Load(name, index, cursor.number() if cursor.accept("pad") else None)
    if cursor.accept("("):
        tile = _call(cursor, name)
        cursor.expect(")")
        return tile
    return Ref(name)


def _const(cursor: Cursor) -> Const:
    value = cursor.number()
    if not cursor.accept(":"):
        return Const(value)
    dtype = "f32" if cursor.peek() == "[" else _dtype(cursor)
    dims = _names(cursor) if cursor.accept("[") else ()
    if dims:
        cursor.expect("]")
    return Const(value, dtype, dims)


def _call(cursor: Cursor, name: str) -> Tile:
    """What stands between the parentheses of `name(...)`."""
    if name == "iota":
        return Iota(cursor.name("an axis"))
    if name == "last":
        return Last(_dtype(cursor))
    first = _expression(cursor)
    if name in REDUCTIONS and cursor.accept("over"):
        return Reduce(name, first, cursor.name("an axis"))
    if name in ("cast", "bitcast"):
        cursor.expect(",")
        return Cast(first, _dtype(cursor), name == "bitcast")
    if name == "rename":
        cursor.expect(",")
        old = cursor.name("an axis")
        cursor.expect("->")
        return Rename(first, old, cursor.name("an axis"))
    if name == "iterate":
        cursor.expect(",")
        following = _expression(cursor)
        cursor.expect(",")
        more = _expression(cursor)
        cursor.expect(",")
        return Iterate(first, following, more, cursor.integer())
    if name == "dot":
        return _dot(cursor, first)
    if name not in SCALARS:
        raise cursor.error(f"no operation {name}; one of {', '.join(SCALARS)}")
    args = [first]
    while cursor.accept(","):
        args.append(_expression(cursor))
    return Map(name, tuple(args))


def _dot(cursor: Cursor, a: Tile) -> Dot:
    cursor.expect(",")
    b = _expression(cursor)
    over: tuple[str, ...] = ()
    acc: Tile | None = None
    dtype, precision = "f32", "ieee"
    while cursor.accept(","):
        part = cursor.take()
        if part == "over":
            over = _names(cursor)
        elif part == "acc":
            acc = _expression(cursor)
        elif part == "dtype":
            dtype = _dtype(cursor)
        elif part == "precision":
            precision = cursor.name("a precision")
        else:
            raise cursor.error(f"dot takes over, acc, dtype, precision, not {part!r}")
    return Dot(a, b, over, acc, dtype, precision)


def _names(cursor: Cursor) -> tuple[str, ...]:
    names = [cursor.name("an axis")]
    while cursor.peek() not in ("", ",", ")", "]"):
        names.append(cursor.name("an axis"))
    return tuple(names)
