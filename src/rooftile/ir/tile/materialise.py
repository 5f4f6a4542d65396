"""Which Lets a CPU keeps in scratch memory, computed once; the others live in registers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rooftile.ir.tile.records import (
    Cast,
    Dot,
    For,
    Kernel,
    Let,
    Load,
    Map,
    Reduce,
    Ref,
    Rename,
    Stmt,
    Store,
    Tile,
    children,
    expressions,
    loops,
    statements,
    subtiles,
)
from rooftile.ir.tile.scalar import EXPENSIVE


@dataclass
class Use:
    """How a Let is used: by how many stored tiles, and whether inside a reduction or a Rename."""

    sinks: int = 0
    inside: bool = False
    renamed: bool = False
    expensive: bool = False
    reduced: frozenset[str] = frozenset()
    spanned: frozenset[str] = frozenset()


Dims = Callable[[Tile], tuple[str, ...]]


def stored_lets(kernel: Kernel, dims: Dims) -> frozenset[str]:
    """The Lets that are computed once and kept in scratch memory; the others are computed where
    they are used, in registers. `dims` gives the dims of an expression.
    """
    lets = {s.name: s.expr for s in _all_lets(kernel.body)}
    carried = {carry.name for loop in loops(kernel.body) for carry in loop.carry}
    kept: set[str] = set()
    order = list(lets)
    while True:
        found = set(kept)
        for name in reversed(order):
            if name not in found and _is_kept(name, lets, kernel, found, dims):
                found.add(name)
        if found == kept:
            return frozenset(kept - carried)
        kept = found


def _all_lets(body: tuple[Stmt, ...]) -> list[Let]:
    out: list[Let] = []
    for stmt in body:
        if isinstance(stmt, Let):
            out.append(stmt)
        elif isinstance(stmt, For):
            out += _all_lets(stmt.body)
    return out


def _is_kept(
    name: str,
    lets: dict[str, Tile],
    kernel: Kernel,
    kept: set[str],
    dims: Dims,
) -> bool:
    tile = lets[name]
    whole = _inlined(tile, lets, kept)
    if _is_overwritten(name, whole, kernel):
        return True
    use = _uses(name, lets, kernel, kept, dims)
    reduction = any(isinstance(part, (Dot, Reduce)) for part in whole)
    costly = reduction or any(isinstance(p, Map) and p.op in EXPENSIVE for p in whole)
    works = costly or any(
        isinstance(p, (Map, Cast)) or (isinstance(p, Load) and children(p)) for p in whole
    )
    if use.renamed and works:
        return True
    if isinstance(tile, (Dot, Reduce)) and use.spanned & set(_reduced_axes(tile)):
        return True
    if use.inside and works and set(dims(tile)) - use.reduced:
        return costly or _repeats(name, lets, kernel, dims)
    if isinstance(tile, (Dot, Reduce)) and use.expensive:
        return True
    if reduction and (use.inside or use.spanned - set(dims(tile))):
        return True
    return costly and use.sinks > 1


def _repeats(name: str, lets: dict[str, Tile], kernel: Kernel, dims: Dims) -> bool:
    """Whether a reduction that reads this Let would compute it again for other dims."""
    mine = set(dims(lets[name]))
    for user, tile in lets.items():
        for part in subtiles(tile):
            if not isinstance(part, Dot) or not _mentions(part, name, lets, set()):
                continue
            if set(dims(lets[user])) - mine:
                return True
    return False


def _inlined(
    tile: Tile, lets: dict[str, Tile], kept: set[str], seen: set[str] | None = None
) -> list[Tile]:
    """All parts of an expression, through the Lets that are not kept, each Let once."""
    seen = set() if seen is None else seen
    out: list[Tile] = []
    for part in subtiles(tile):
        out.append(part)
        if not isinstance(part, Ref) or part.name in seen:
            continue
        if part.name in lets and part.name not in kept:
            seen.add(part.name)
            out += _inlined(lets[part.name], lets, kept, seen)
    return out


def _is_overwritten(name: str, parts: list[Tile], kernel: Kernel) -> bool:
    """Whether a buffer that it reads is written behind it: it may be used after that."""
    order = list(statements(kernel.body))
    mine = next(n for n, s in enumerate(order) if isinstance(s, Let) and s.name == name)
    written = {stmt.buf for stmt in order[mine:] if isinstance(stmt, Store)}
    return any(isinstance(part, Load) and part.buf in written for part in parts)


def _reduced_axes(tile: Dot | Reduce) -> tuple[str, ...]:
    if isinstance(tile, Dot):
        return tile.over
    inner = _reduced_axes(tile.x) if isinstance(tile.x, Reduce) else ()
    return (tile.axis, *inner)


def _uses(name: str, lets: dict[str, Tile], kernel: Kernel, kept: set[str], dims: Dims) -> Use:
    use = Use()
    ends = [
        tile
        for tile in expressions(kernel.body)
        if not any(tile is lets[n] for n in lets if n not in kept)
    ]
    for tile in ends:
        if _note(tile, name, lets, kept, use, False, False, frozenset(), {}):
            use.sinks += 1
            use.spanned |= frozenset(dims(tile))
    return use


def _note(
    tile: Tile,
    name: str,
    lets: dict[str, Tile],
    kept: set[str],
    use: Use,
    inside: bool,
    expensive: bool,
    reduced: frozenset[str],
    seen: dict[tuple[str, bool, bool, frozenset[str]], bool],
) -> bool:
    if isinstance(tile, Ref):
        if tile.name == name:
            use.inside |= inside
            use.expensive |= expensive
            use.reduced |= reduced
            return True
        if tile.name not in lets or tile.name in kept:
            return False
        key = (tile.name, inside, expensive, reduced)  # a Let may be read many times: noted once
        if key not in seen:
            inner = lets[tile.name]
            seen[key] = _note(inner, name, lets, kept, use, inside, expensive, reduced, seen)
        return seen[key]
    if isinstance(tile, (Dot, Reduce)):
        inside, expensive = True, False
        reduced |= frozenset(tile.over if isinstance(tile, Dot) else (tile.axis,))
    if isinstance(tile, Map) and tile.op in EXPENSIVE:
        expensive = True
    found = False
    for child in children(tile):
        here = _note(child, name, lets, kept, use, inside, expensive, reduced, seen)
        use.renamed |= here and isinstance(tile, Rename)
        found |= here
    return found


def _mentions(tile: Tile, name: str, lets: dict[str, Tile], kept: set[str]) -> bool:
    parts = _inlined(tile, lets, kept)
    return any(isinstance(part, Ref) and part.name == name for part in parts)
