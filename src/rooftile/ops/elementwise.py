"""Elementwise ops: inputs of equal rank, each dim equal or 1, one output element at a time.

Each operation of a body counts one, so `logistic` counts four: neg, exp, add, div.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rooftile.core.dtype import DType
from rooftile.ir.graph import Array, Node, Value
from rooftile.ir.tile import Const, Map, Tile
from rooftile.ir.tile.scalar import LIBRARY, SCALARS
from rooftile.ops.base import Body, Index, Op, Type, register
from rooftile.ops.rules import (
    Attrs,
    aligned,
    arity,
    broadcast_shape,
    of_kind,
    per_element,
    same_dtype,
)

FLOAT = ("float",)
NUMBER = ("float", "int", "uint")
ANY = ("float", "int", "uint", "bool")
INTEGER = ("int", "uint")
BOOL = ("bool",)


@dataclass(frozen=True)
class _Family:
    """What tells one elementwise op from another. `kinds` are those of its inputs."""

    name: str
    inputs: int
    kinds: tuple[str, ...]
    gives_bool: bool = False


_FAMILY = (
    *(_Family(name, 1, NUMBER) for name in ("neg", "abs")),
    *(_Family(name, 1, FLOAT) for name in ("sqrt", "exp", "log", "erf", "tanh")),
    *(_Family(name, 1, FLOAT) for name in ("floor", "ceil", "round")),
    *(_Family(name, 2, NUMBER) for name in ("add", "sub", "mul", "div", "max", "min", "pow")),
    *(_Family(name, 2, ANY, gives_bool=True) for name in ("lt", "le", "eq")),
    *(_Family(name, 2, BOOL, gives_bool=True) for name in ("and", "or")),
    _Family("not", 1, BOOL, gives_bool=True),
    *(_Family(name, 1, FLOAT) for name in LIBRARY),
    _Family("fmod", 2, FLOAT),
    *(_Family(name, 2, INTEGER) for name in ("bitand", "bitor", "bitxor", "shl", "shr")),
    _Family("bitnot", 1, INTEGER),
)


def _infer(family: _Family) -> Callable[[Attrs, Sequence[Value]], tuple[Type, ...]]:
    def infer(attrs: Attrs, inputs: Sequence[Value]) -> tuple[Type, ...]:
        for value in arity(family.name, inputs, family.inputs):
            of_kind(family.name, value, *family.kinds)
        dtype: DType = same_dtype(family.name, inputs)
        shape = broadcast_shape(family.name, inputs)
        return ((shape, "bool" if family.gives_bool else dtype),)

    return infer


def _scalar_reference(name: str) -> Callable[[Attrs, Sequence[Array]], tuple[Array, ...]]:
    def reference(attrs: Attrs, arrays: Sequence[Array]) -> tuple[Array, ...]:
        return (np.asarray(SCALARS[name].meaning(*arrays)),)

    return reference


def _scalar_body(name: str) -> Callable[[Node, Index, Body], Tile]:
    def body(node: Node, index: Index, build: Body) -> Tile:
        return Map(name, operands(index, build))

    return body


def operands(index: Index, build: Body) -> tuple[Tile, ...]:
    """Every input at the output's index, with 0 along dims that broadcast."""
    return tuple(
        build.arg(number, aligned(value, index)) for number, value in enumerate(build.inputs)
    )


for _family in _FAMILY:
    register(
        Op(
            _family.name,
            "elementwise",
            _infer(_family),
            _scalar_reference(_family.name),
            per_element(1),
            _scalar_body(_family.name),
        )
    )


def _logistic_reference(attrs: Attrs, arrays: Sequence[Array]) -> tuple[Array, ...]:
    (x,) = arrays
    one = x.dtype.type(1)
    return (np.asarray(one / (one + np.exp(-x))),)


def _logistic_body(node: Node, index: Index, build: Body) -> Tile:
    one = Const(1.0, node.output.dtype)
    decay = Map("exp", (Map("neg", operands(index, build)),))
    return Map("div", (one, Map("add", (one, decay))))


register(
    Op(
        "logistic",
        "elementwise",
        _infer(_Family("logistic", 1, FLOAT)),
        _logistic_reference,
        per_element(4),
        _logistic_body,
    )
)


def _isnan_body(node: Node, index: Index, build: Body) -> Tile:
    (x,) = operands(index, build)
    return Map("not", (Map("eq", (x, x)),))


register(
    Op(
        "isnan",
        "elementwise",
        _infer(_Family("isnan", 1, FLOAT, gives_bool=True)),
        lambda attrs, arrays: (np.isnan(arrays[0]),),
        per_element(2),
        _isnan_body,
    )
)


def _where_infer(attrs: Attrs, inputs: Sequence[Value]) -> tuple[Type, ...]:
    condition, *choices = arity("where", inputs, 3)
    of_kind("where", condition, "bool")
    return ((broadcast_shape("where", inputs), same_dtype("where", choices)),)


register(
    Op(
        "where",
        "elementwise",
        _where_infer,
        _scalar_reference("where"),
        per_element(1),
        _scalar_body("where"),
    )
)
