"""Tile IR as text: `to_text` prints a kernel, `parse` reads it back to an equal kernel."""

from __future__ import annotations

from rooftile.core.affine import Affine
from rooftile.ir.tile.parser import parse
from rooftile.ir.tile.records import (
    Axis,
    Buf,
    Cast,
    Const,
    Dot,
    Iota,
    Iterate,
    Kernel,
    Last,
    Let,
    Load,
    Map,
    Reduce,
    Ref,
    Rename,
    Stmt,
    Store,
    Tile,
)

__all__ = ["expression_text", "parse", "to_text"]


def to_text(kernel: Kernel) -> str:
    """The kernel as text, one buffer and one statement a line; ends with a newline."""
    lines = [f"kernel {kernel.name}"]
    lines += [f"  {_buffer(buf)}" for buf in kernel.bufs]
    if kernel.whole:
        lines.append("  whole " + ", ".join(map(_axis, kernel.whole)))
    if kernel.grid:
        lines.append("  grid " + ", ".join(map(_axis, kernel.grid)))
    lines += _body(kernel.body, "  ")
    return "\n".join(lines) + "\n"


def expression_text(tile: Tile) -> str:
    """One expression as text."""
    if isinstance(tile, Ref):
        return tile.name
    if isinstance(tile, Load):
        pad = "" if tile.pad is None else f" pad {_number(tile.pad)}"
        return f"{tile.buf}[{_index(tile.index)}]{pad}"
    if isinstance(tile, Const):
        return _const(tile)
    if isinstance(tile, Iota):
        return f"iota({tile.axis})"
    if isinstance(tile, Last):
        return f"last({tile.dtype})"
    if isinstance(tile, Iterate):
        parts = map(expression_text, (tile.init, tile.next, tile.more))
        return f"iterate({', '.join(parts)}, {tile.most})"
    if isinstance(tile, Map):
        return f"{tile.op}({', '.join(map(expression_text, tile.args))})"
    if isinstance(tile, Cast):
        word = "bitcast" if tile.bits else "cast"
        return f"{word}({expression_text(tile.x)}, {tile.dtype})"
    if isinstance(tile, Reduce):
        return f"{tile.op}({expression_text(tile.x)} over {tile.axis})"
    if isinstance(tile, Rename):
        return f"rename({expression_text(tile.x)}, {tile.old} -> {tile.new})"
    return _dot(tile)


def _index(index: tuple[Affine | Tile, ...]) -> str:
    return ", ".join(str(p) if isinstance(p, Affine) else f"@{expression_text(p)}" for p in index)


def _dot(tile: Dot) -> str:
    parts = [expression_text(tile.a), expression_text(tile.b)]
    if tile.over:
        parts.append("over " + " ".join(tile.over))
    if tile.acc is not None:
        parts.append("acc " + expression_text(tile.acc))
    if tile.dtype != "f32":
        parts.append(f"dtype {tile.dtype}")
    if tile.precision != "ieee":
        parts.append(f"precision {tile.precision}")
    return f"dot({', '.join(parts)})"


def _const(tile: Const) -> str:
    dtype = "" if tile.dtype == "f32" else tile.dtype
    dims = f"[{' '.join(tile.dims)}]" if tile.dims else ""
    return _number(tile.value) + (f":{dtype}{dims}" if dtype or dims else "")


def _number(value: float) -> str:
    return repr(int(value)) if isinstance(value, int) else repr(float(value))


def _buffer(buf: Buf) -> str:
    shape = ",".join(map(str, buf.shape))
    line = f"{buf.space} {buf.name}: {buf.dtype}[{shape}]"
    if buf.layout is not None:
        marks = {"all": "", "div": "/", "mod": "%"}
        parts = [f"{d}{marks[part]}{n if part != 'all' else ''}" for d, n, part in buf.layout]
        line += " layout " + " ".join(parts)
    if buf.halo is not None:
        line += " halo " + " ".join(f"{low}:{high}" for low, high in buf.halo)
    if buf.most is not None:
        line += f" most {buf.most}"
    return line.rstrip()


def _axis(axis: Axis) -> str:
    tile = {"whole": "", "point": " point"}.get(str(axis.tile), f" tile {axis.tile}")
    within = "" if axis.within is None else f" within {axis.within}"
    return f"{axis.name}<{axis.extent}{tile}{within}"


def _body(body: tuple[Stmt, ...], indent: str) -> list[str]:
    lines = []
    for stmt in body:
        if isinstance(stmt, Let):
            lines.append(f"{indent}{stmt.name} = {expression_text(stmt.expr)}")
        elif isinstance(stmt, Store):
            combine = f" combine {stmt.combine}" if stmt.combine else ""
            line = f"{stmt.buf}[{_index(stmt.index)}] := {expression_text(stmt.expr)}{combine}"
            lines.append(indent + line)
        else:
            start = [f" carry {c.name} = {expression_text(c.init)}" for c in stmt.carry]
            lines.append(f"{indent}for {_axis(stmt.axis)}{''.join(start)}")
            lines += _body(stmt.body, indent + "  ")
            lines += [f"{indent}  next {c.name} = {expression_text(c.next)}" for c in stmt.carry]
    return lines
