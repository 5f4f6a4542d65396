"""Which stage of a compilation first changes what a model computes by more than a bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rooftile.core.compare import difference
from rooftile.core.errors import RooftileError
from rooftile.core.journal import Journal
from rooftile.core.options import CompileOptions
from rooftile.frontends import onnx
from rooftile.ir.graph import Array, Graph
from rooftile.ops.evaluate import evaluate
from rooftile.passes import simplify
from rooftile.pipeline import compile_model
from rooftile.plan.layout import channels_last

BOUND = 1e-4
"""Of the largest value of each output: what float32 kernels stay within on sound models."""


@dataclass(frozen=True)
class Stage:
    """`difference`: the largest from float64, relative to the largest value of its output; None
    where outputs differ in number, shape or special values, or the stage failed: `why` says so.
    """

    name: str
    difference: float | None
    why: str = ""

    def exceeds(self, bound: float) -> bool:
        """Whether the stage is further from float64 than `bound`; it is where nothing is known."""
        return self.difference is None or self.difference > bound


@dataclass(frozen=True)
class Report:
    """The stages in order. `first` names the first that exceeds the bound, None where none does."""

    bound: float
    stages: tuple[Stage, ...]

    @property
    def first(self) -> Stage | None:
        """The first stage that exceeds the bound."""
        return next((stage for stage in self.stages if stage.exceeds(self.bound)), None)

    def __str__(self) -> str:
        lines = []
        for stage in self.stages:
            shown = stage.why if stage.difference is None else f"{stage.difference:.1e}"
            lines.append(f"{stage.name}: {shown}")
        verdict = (
            f"all within {self.bound:.0e}"
            if self.first is None
            else f"the first beyond {self.bound:.0e} is {self.first.name}"
        )
        return "\n".join([*lines, verdict])


def stages(
    model: Any,
    feeds: Mapping[str, Array],
    bound: float = BOUND,
    options: CompileOptions | None = None,
) -> Report:
    """Hold a model's graph after each stage, and the compiled program, against float64.

    The truth is the graph as it was read, computed in float64 on `feeds`. RooftileError where the
    model cannot be read or the feeds do not fit; a later stage that fails is in the report.
    """
    options = options or CompileOptions()
    shapes = {name: tuple(np.shape(array)) for name, array in feeds.items()}
    read = onnx.read(model, shapes)
    truth = list(evaluate(read, feeds).values())

    def simplified() -> Graph:
        return simplify(read, options.level)

    def computed(graph: Graph) -> list[Array]:
        return list(evaluate(graph, feeds).values())

    def compiled() -> list[Array]:
        found = compile_model(model, shapes, options, Journal())
        return found.executable.run([feeds[value.name] for value in read.inputs])

    runs: dict[str, Callable[[], list[Array]]] = {
        "simplify": lambda: computed(simplified()),
        "layout": lambda: computed(channels_last(simplified(), Journal())),
        "compiled": compiled,
    }
    return Report(bound, tuple(_stage(name, run, truth) for name, run in runs.items()))


def _stage(name: str, run: Callable[[], list[Array]], truth: list[Array]) -> Stage:
    try:
        found = run()
    except RooftileError as error:
        return Stage(name, None, f"{type(error).__name__}: {error}")
    return Stage(name, *difference(found, truth))
