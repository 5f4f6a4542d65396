"""Stores at indices from data, and stores that combine: one element after the other, in order."""

from __future__ import annotations

from rooftile.codegen.llvm.access import load, store
from rooftile.codegen.llvm.evaluate import Evaluator
from rooftile.codegen.llvm.scalar import apply
from rooftile.codegen.llvm.state import Point, Span, State
from rooftile.core.affine import Affine
from rooftile.ir.tile import Load, Store


def scatter(stmt: Store, state: State, evaluator: Evaluator) -> None:
    """The loops of a store over all its axes. An index outside its dim is noted, and the element
    written at 0 instead: the run fails, its results are thrown away."""
    before, state.vector_axis = state.vector_axis, None
    state.forget()
    target = Load(stmt.buf, stmt.index)
    _nest(list(state.scope.dims(target)), stmt, target, state, evaluator)
    state.forget()
    state.vector_axis = before


def _nest(axes: list[str], stmt: Store, target: Load, state: State, evaluator: Evaluator) -> None:
    if not axes:
        _element(stmt, target, evaluator)
        return
    axis, rest = axes[0], axes[1:]
    span = state.spans[axis]

    def body(counter: Affine, _: list[str]) -> list[str]:
        with state.spanning(**{axis: Span(span.base + counter, 1)}):
            _nest(rest, stmt, target, state, evaluator)
        return []

    state.loop(0, span.size, body)


def _element(stmt: Store, target: Load, evaluator: Evaluator) -> None:
    point = Point()
    evaluator.prepare(stmt.expr, [point])
    value = evaluator.value(stmt.expr, point)
    state, place = evaluator.state, evaluator.target(target, point)
    if stmt.combine is not None:
        there = load(state, place, value.dtype)
        value = apply(state.writer, stmt.combine, [there, value])
    store(state, place, value)
