"""The form that LLVM code is made from: every Dot and Reduce has a Let of its own, loops that only
accumulate a Dot are one Dot, and it is known which Lets are kept in scratch memory."""

from __future__ import annotations

from dataclasses import replace

from rooftile.ir.tile import (
    Const,
    Dot,
    For,
    Kernel,
    Let,
    Map,
    Reduce,
    Ref,
    Stmt,
    Tile,
    loops,
    rebuild,
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


def normalised(kernel: Kernel) -> Kernel:
    """Both rewrites."""
    return name_reductions(absorb_loops(kernel))
