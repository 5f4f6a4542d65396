"""The form that LLVM code is made from: every Dot and Reduce has a Let of its own, loops that only
accumulate a Dot are one Dot, and it is known which Lets are kept in scratch memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from rooftile.ir.tile import (
    Carry,
    Cast,
    Const,
    Dot,
    For,
    Iota,
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
    rebuild,
    stores,
    subtiles,
)

EXPENSIVE = frozenset(("exp", "log", "erf", "tanh"))


def absorb_loops(kernel: Kernel) -> Kernel:
    """Loops that do nothing but add to one Dot become that Dot over their whole axis."""
    whole = list(kernel.whole)

    def block(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, For):
                dot = _only_a_dot(stmt)
                if dot is not None:
                    for loop in (stmt, *loops(stmt.body)):
                        whole.append(replace(loop.axis, tile="whole"))
                    out.append(Let(stmt.carry[0].name, dot))
                    continue
                stmt = replace(stmt, body=block(stmt.body))
            out.append(stmt)
        return tuple(out)

    body = block(kernel.body)
    return replace(kernel, body=body, whole=tuple(whole))


def _only_a_dot(loop: For) -> Dot | None:
    """The loop as one Dot over its axis and those of the loops inside, if that is all it does."""
    if len(loop.carry) != 1 or loop.axis.within or not isinstance(loop.axis.extent, int):
        return None
    carry = loop.carry[0]
    known: dict[str, Tile] = {}

    def filled(tile: Tile) -> Tile:
        if isinstance(tile, Ref) and tile.name in known:
            return known[tile.name]
        return rebuild(tile, filled)

    for stmt in loop.body:
        if isinstance(stmt, Let):
            known[stmt.name] = filled(stmt.expr)
            continue
        inner = _only_a_dot(stmt) if isinstance(stmt, For) else None
        if inner is None or not isinstance(stmt, For):
            return None
        known[stmt.carry[0].name] = inner
    dot = _accumulates(filled(carry.next), carry.name, loop.axis.name)
    if dot is None:
        return None
    zero = isinstance(carry.init, Const) and carry.init.value == 0
    return replace(dot, acc=None if zero else carry.init)


def _accumulates(step: Tile, name: str, axis: str) -> Dot | None:
    """A step that adds products to the carry `name`, as a Dot over `axis` too."""
    if isinstance(step, Dot) and step.acc == Ref(name):
        return step if axis in step.over else replace(step, over=(axis, *step.over))
    if not isinstance(step, Map) or step.op != "add" or step.args[0] != Ref(name):
        return None
    product = step.args[1]
    if not isinstance(product, Map) or product.op != "mul":
        return None
    return Dot(product.args[0], product.args[1], (axis,), Ref(name))


def name_reductions(kernel: Kernel) -> Kernel:
    """Give every Dot and Reduce inside an expression a Let in front of the statement.

    A Reduce directly inside a Reduce of the same kind stays: both are one loop nest. So does what
    lies inside the operand of a reduction whose own axes it varies along.
    """
    counter = [0]

    def pull(tile: Tile, lets: list[Let], top: bool) -> Tile:
        if isinstance(tile, Reduce) and isinstance(tile.x, Reduce) and tile.x.op == tile.op:
            inner = tile.x
            chain: Tile = Reduce(inner.op, pull(inner.x, lets, False), inner.axis)
            while_top: Tile = Reduce(tile.op, chain, tile.axis)
            return while_top if top else _named(while_top, lets, counter)
        new = rebuild(tile, lambda child: pull(child, lets, False))
        if isinstance(new, (Dot, Reduce)) and not top:
            return _named(new, lets, counter)
        return new

    def block(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for stmt in body:
            lets: list[Let] = []
            if isinstance(stmt, For):
                carry = tuple(replace(c, init=pull(c.init, lets, False)) for c in stmt.carry)
                tail: list[Let] = []
                carry = tuple(replace(c, next=pull(c.next, tail, False)) for c in carry)
                stmt = replace(stmt, body=(*block(stmt.body), *tail), carry=carry)
            else:
                stmt = replace(stmt, expr=pull(stmt.expr, lets, isinstance(stmt, Let)))
            out += [*lets, stmt]
        return tuple(out)

    return replace(kernel, body=block(kernel.body))


def _named(tile: Tile, lets: list[Let], counter: list[int]) -> Ref:
    counter[0] += 1
    name = f"r{counter[0]}_"
    lets.append(Let(name, tile))
    return Ref(name)


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
    if _is_stale(name, whole, kernel):
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
    if reduction and use.inside:
        return True
    return costly and use.sinks > 1


def _repeats(
    name: str, lets: dict[str, Tile], kernel: Kernel, dims: Dims
) -> bool:
    """Whether a reduction that reads this Let would compute it again for other dims."""
    mine = set(dims(lets[name]))
    for user, tile in lets.items():
        for part in subtiles(tile):
            if not isinstance(part, Dot) or not _mentions(part, name, lets, set()):
                continue
            if set(dims(lets[user])) - mine:
                return True
    return False


def _inlined(tile: Tile, lets: dict[str, Tile], kept: set[str]) -> list[Tile]:
    """All parts of an expression, through the Lets that are not kept."""
    out: list[Tile] = []
    for part in subtiles(tile):
        out.append(part)
        if isinstance(part, Ref) and part.name in lets and part.name not in kept:
            out += _inlined(lets[part.name], lets, kept)
    return out


def _is_stale(name: str, parts: list[Tile], kernel: Kernel) -> bool:
    """Whether a buffer that it reads is written in this kernel."""
    written = {store.buf for store in stores(kernel.body)}
    return any(isinstance(p, Load) and p.buf in written and not _scratch(kernel, p) for p in parts)


def _scratch(kernel: Kernel, load: Load) -> bool:
    return kernel.buf(load.buf).space == "scratch"


def _reduced_axes(tile: Dot | Reduce) -> tuple[str, ...]:
    if isinstance(tile, Dot):
        return tile.over
    inner = _reduced_axes(tile.x) if isinstance(tile.x, Reduce) else ()
    return (tile.axis, *inner)


def _uses(
    name: str, lets: dict[str, Tile], kernel: Kernel, kept: set[str], dims: Dims
) -> Use:
    use = Use()
    tops = [tile for tile in expressions(kernel.body)]
    ends = [tile for tile in tops if not any(tile is lets[n] for n in lets if n not in kept)]
    for tile in ends:
        if _note(tile, name, lets, kept, use, False, False, frozenset()):
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
) -> bool:
    if isinstance(tile, Ref):
        if tile.name == name:
            use.inside |= inside
            use.expensive |= expensive
            use.reduced |= reduced
            return True
        if tile.name in lets and tile.name not in kept:
            return _note(lets[tile.name], name, lets, kept, use, inside, expensive, reduced)
        return False
    if isinstance(tile, (Dot, Reduce)):
        inside, expensive = True, False
        reduced |= frozenset(tile.over if isinstance(tile, Dot) else (tile.axis,))
    if isinstance(tile, Map) and tile.op in EXPENSIVE:
        expensive = True
    found = False
    for child in children(tile):
        here = _note(child, name, lets, kept, use, inside, expensive, reduced)
        use.renamed |= here and isinstance(tile, Rename)
        found |= here
    return found


def _mentions(tile: Tile, name: str, lets: dict[str, Tile], kept: set[str]) -> bool:
    for part in _inlined(tile, lets, kept):
        if isinstance(part, Ref) and part.name == name:
            return True
    return False


def normalised(kernel: Kernel) -> Kernel:
    """Both rewrites."""
    return name_reductions(absorb_loops(kernel))


__all__ = ["Carry", "Iota", "Store", "normalised", "stored_lets"]
