"""The form that LLVM code is made from: every Dot and Reduce has a Let of its own, loops that only
accumulate a Dot are one Dot, and equal parts of an expression are one object."""

from __future__ import annotations

from dataclasses import replace

from rooftile.ir.tile import (
    Axis,
    Carry,
    Const,
    Dot,
    For,
    Kernel,
    Let,
    Map,
    Reduce,
    Ref,
    Scope,
    Stmt,
    Tile,
    children,
    loops,
    rebuild,
    subtiles,
)
from rooftile.ir.tile.query import complete_scope


def absorb_loops(kernel: Kernel) -> Kernel:
    """Loops that do nothing but add to one Dot become that Dot over their whole axis."""
    whole = list(kernel.whole)
    scope = complete_scope(kernel)

    def block(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, For):
                dot = _only_a_dot(stmt, scope)
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


def _only_a_dot(loop: For, scope: Scope) -> Dot | None:
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
        inner = _only_a_dot(stmt, scope) if isinstance(stmt, For) else None
        if inner is None or not isinstance(stmt, For):
            return None
        known[stmt.carry[0].name] = inner
    dot = _accumulates(filled(carry.next), carry, loop.axis, scope)
    if dot is None:
        return None
    zero = isinstance(carry.init, Const) and carry.init.value == 0
    return replace(dot, acc=None if zero else carry.init)


def _accumulates(step: Tile, carry: Carry, axis: Axis, scope: Scope) -> Dot | None:
    """A step that adds products to a carry once for each element of `axis`, as a Dot over it."""
    total = Ref(carry.name)
    if isinstance(step, Dot):
        found = step
        if axis.name not in step.over:
            if axis.tile != "point":
                return None
            found = replace(step, over=(axis.name, *step.over))
    elif isinstance(step, Map) and step.op == "add" and axis.tile == "point":
        first, product = step.args
        same = isinstance(product, Map) and product.op == "mul"
        if not same or set(scope.dims(product)) != set(scope.dims(carry.init)):
            return None
        a, b = children(product)
        found = Dot(a, b, (axis.name,), first, scope.dtype(product))
    else:
        return None
    if found.acc != total or any(total in subtiles(tile) for tile in (found.a, found.b)):
        return None
    return found


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


def share_equal(kernel: Kernel) -> Kernel:
    """Equal parts of one expression are one object, which is what is remembered when computed.

    Statements share nothing: memory may change between them.
    """

    def shared(tile: Tile) -> Tile:
        known: dict[Tile, Tile] = {}

        def one(part: Tile) -> Tile:
            new = rebuild(part, one)
            shallow = rebuild(new, lambda child: Ref(f"#{id(child)}"))
            return known.setdefault(shallow, new)

        return one(tile)

    def block(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, For):
                carry = tuple(
                    replace(c, init=shared(c.init), next=shared(c.next)) for c in stmt.carry
                )
                out.append(replace(stmt, body=block(stmt.body), carry=carry))
            else:
                out.append(replace(stmt, expr=shared(stmt.expr)))
        return tuple(out)

    return replace(kernel, body=block(kernel.body))


def normalised(kernel: Kernel) -> Kernel:
    """All three rewrites."""
    return share_equal(name_reductions(absorb_loops(kernel)))
