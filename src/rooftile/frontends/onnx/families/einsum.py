"""Einsum: operands joined from left to right, each label summed as soon as nobody needs it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from rooftile.core.symbolic import same
from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.registry import reads
from rooftile.ir.graph import Value

Labels = tuple[str, ...]
_TERM = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*\Z")


MOST_ROWS = 5
"""Determinants of larger matrices would take too many products of cofactors."""


@dataclass(frozen=True)
class _Operand:
    """A value and the label of each of its dims, none twice."""

    value: Value
    labels: Labels


@reads("Einsum")
def einsum(call: Call) -> Value:
    """Sums of products over labelled dims, as numpy's einsum."""
    values = call.every()
    terms, result = _parsed(call, len(values))
    extra = max(
        (
            v.rank - len(t.replace("...", ""))
            for v, t in zip(values, terms, strict=True)
            if "..." in t
        ),
        default=0,
    )
    labels = [_labels(call, v, t, extra) for v, t in zip(values, terms, strict=True)]
    wanted = _wanted(call, labels, result, extra)
    sizes = _sizes(call, values, labels)
    operands = [_plain(call, v, some, sizes) for v, some in zip(values, labels, strict=True)]
    needed = [set(wanted)]  # behind each operand, from the last one on
    for operand in operands[:1:-1]:
        needed.append(needed[-1] | set(operand.labels))
    total = operands[0]
    for operand, later in zip(operands[1:], needed[::-1], strict=False):
        total = _joined(call, total, operand, later)
    total = _summed(call, total, set(wanted))
    missing = [name for name in wanted if name not in total.labels]
    if missing:
        call.invalid(f"its output names {', '.join(missing)}, which no input has")
    return call.transpose(total.value, [total.labels.index(name) for name in wanted])


def _parsed(call: Call, count: int) -> tuple[list[str], str | None]:
    text = call.text("equation").replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != count or not all(map(_TERM.match, [*terms, right])):
        call.invalid(f"equation {text!r} does not describe {count} inputs")
    return terms, right if arrow else None


def _dots(count: int, extra: int) -> Labels:
    """The labels of `count` dims of an ellipsis, of the last of `extra`."""
    return tuple(f".{number}" for number in range(extra - count, extra))


def _labels(call: Call, value: Value, term: str, extra: int) -> Labels:
    before, dots, after = term.partition("...")
    hidden = value.rank - len(before) - len(after)
    if hidden < 0 or (hidden and not dots):
        call.invalid(f"term {term!r} does not fit an input of rank {value.rank}")
    return (*before, *_dots(hidden, extra), *after)


def _wanted(call: Call, labels: Sequence[Labels], result: str | None, extra: int) -> Labels:
    """The output's labels; without an arrow the dims of ellipses, then the labels met once."""
    if result is None:
        every = [name for some in labels for name in some if not name.startswith(".")]
        return (*_dots(extra, extra), *sorted(n for n in set(every) if every.count(n) == 1))
    before, dots, after = result.partition("...")
    found = (*before, *(_dots(extra, extra) if dots else ()), *after)
    if len(set(found)) < len(found):
        call.invalid(f"its output {result!r} names a label twice")
    return found


def _sizes(call: Call, values: Sequence[Value], labels: Sequence[Labels]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for value, some in zip(values, labels, strict=True):
        for name, extent in zip(some, value.dims, strict=True):
            known = sizes.setdefault(name, extent)
            if 1 not in (known, extent) and not same(known, extent):
                call.invalid(f"label {name} stands for dims of {known} and {extent}")
            sizes[name] = extent if known == 1 else known
    return sizes


def _plain(call: Call, value: Value, labels: Labels, sizes: dict[str, int]) -> _Operand:
    """Without labels that are there twice (their diagonal stays) or that broadcast."""
    for name in dict.fromkeys(labels):
        while labels.count(name) > 1:
            value, labels = _diagonal(call, value, labels, name)
    kept = [n for n, extent in enumerate(value.dims) if extent == sizes[labels[n]]]
    value = call.reshape(value, [value.dims[n] for n in kept])
    return _Operand(value, tuple(labels[n] for n in kept))


def _diagonal(call: Call, value: Value, labels: Labels, name: str) -> tuple[Value, Labels]:
    """The elements at which the first two dims of a label are equal, along a last dim."""
    first, second = [n for n, label in enumerate(labels) if label == name][:2]
    extent = value.dims[first]
    if not same(value.dims[second], extent):
        call.invalid(f"label {name} stands for dims of {extent} and {value.dims[second]}")
    rest = [n for n in range(value.rank) if n not in (first, second)]
    lead = [value.dims[n] for n in rest]
    flat = call.reshape(call.transpose(value, [*rest, first, second]), (*lead, extent * extent))
    found = call.emit(
        "slice",
        flat,
        starts=(0,) * (len(lead) + 1),
        limits=(*lead, extent * extent),
        strides=(*([1] * len(lead)), extent + 1),
    )
    return found, (*(labels[n] for n in rest), name)


def _summed(call: Call, operand: _Operand, needed: set[str]) -> _Operand:
    """Without the labels that nobody needs."""
    dims = [n for n, name in enumerate(operand.labels) if name not in needed]
    if not dims:
        return operand
    total = call.emit("reduce", operand.value, op="sum", dims=tuple(dims))
    kept = [n for n in range(len(operand.labels)) if n not in dims]
    value = call.reshape(total, [operand.value.dims[n] for n in kept])
    return _Operand(value, tuple(operand.labels[n] for n in kept))


def _joined(call: Call, a: _Operand, b: _Operand, later: set[str]) -> _Operand:
    """The product of two operands, summed over what they share and nobody needs later."""
    a = _summed(call, a, later | set(b.labels))
    b = _summed(call, b, later | set(a.labels))
    shared = [name for name in a.labels if name in b.labels]
    over = [name for name in shared if name not in later]
    batch = [name for name in shared if name in later]
    free = [name for side in (a, b) for name in side.labels if name not in shared]
    small = a.value.dtype in ("i8", "i16", "u8", "u16", "u32", "u64")
    if not over or small:
        labels = (*batch, *free, *over)
        product = call.emit("mul", _spread(call, a, labels), _spread(call, b, labels))
        return _summed(call, _Operand(product, labels), later)
    result = call.emit(
        "dot",
        a.value,
        b.value,
        lhs_contract=tuple(a.labels.index(name) for name in over),
        rhs_contract=tuple(b.labels.index(name) for name in over),
        lhs_batch=tuple(a.labels.index(name) for name in batch),
        rhs_batch=tuple(b.labels.index(name) for name in batch),
    )
    return _Operand(result, (*batch, *free))


def _spread(call: Call, operand: _Operand, labels: Labels) -> Value:
    """The operand with its dims in the order of `labels`, of size 1 where it lacks one."""
    order = [operand.labels.index(name) for name in labels if name in operand.labels]
    moved = call.transpose(operand.value, order)
    sizes = dict(zip(operand.labels, operand.value.dims, strict=True))
    return call.reshape(moved, [sizes.get(name, 1) for name in labels])


@reads("Det")
def determinant(call: Call) -> Value:
    """Determinants of small matrices, by cofactors of the first row."""
    x = call.input(0)
    if x.rank < 2 or x.dims[-1] != x.dims[-2]:
        call.invalid(f"square matrices are needed, not {list(x.shape)}")
    size, lead = x.dims[-1], x.dims[:-2]
    if size > MOST_ROWS:
        call.on_host(f"matrices of {size} rows are factored; kernels do up to {MOST_ROWS}")
    flat = call.reshape(x, (math.prod(lead), size, size))
    return call.reshape(_cofactors(call, flat, 0, tuple(range(size))), lead)


def _cofactors(call: Call, x: Value, row: int, columns: tuple[int, ...]) -> Value:
    if not columns:
        return call.constant([1.0], x.dtype)
    total: Value | None = None
    for number, column in enumerate(columns):
        item = call.emit(
            "slice",
            x,
            starts=(0, row, column),
            limits=(x.dims[0], row + 1, column + 1),
            strides=(1, 1, 1),
        )
        item = call.reshape(item, (x.dims[0],))
        rest = columns[:number] + columns[number + 1 :]
        if rest:
            item = call.emit("mul", item, _cofactors(call, x, row + 1, rest))
        if total is None:
            total = item
        else:
            total = call.emit("sub" if number % 2 else "add", total, item)
    assert total is not None
    return total
