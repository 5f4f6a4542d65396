"""InferenceSession: a model that runs, with the calls that onnxruntime has."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rooftile.core.errors import (
    InvalidInput,
    NeedsHost,
    NeedsValue,
    UnsupportedOp,
    UnsupportedType,
)
from rooftile.core.journal import Decision
from rooftile.ir.program import Program
from rooftile.native import Stop
from rooftile.session.binding import IOBinding
from rooftile.session.compiled import Compiled, arrange, compile
from rooftile.session.explanation import explained, programs_of
from rooftile.session.guard import check_shapes, guarded
from rooftile.session.narrow import Boundary
from rooftile.session.options import (
    CPU,
    Providers,
    SessionOptions,
    check_providers,
    stop_of,
)
from rooftile.session.options import compile_options as checked
from rooftile.session.programs import Programs, Shapes
from rooftile.session.segment import Environment, Shared
from rooftile.session.segmented import Segmented
from rooftile.session.taking import Taken, is_tensor, takers
from rooftile.session.values import Array, OrtValue

if TYPE_CHECKING:
    from rooftile.report import Explanation

KEPT_VARIANTS = 8
"""For how many sets of overridden weights."""


@dataclass(frozen=True)
class NodeArg:
    """An input or output of a model. A dim is an int, a symbol's name, or None."""

    name: str
    shape: list[int | str | None]
    type: str


@dataclass(frozen=True)
class ModelMetadata:
    """What a model file says about itself."""

    producer_name: str = ""
    graph_name: str = ""
    graph_description: str = ""
    domain: str = ""
    description: str = ""
    version: int = 0
    custom_metadata_map: dict[str, str] = field(default_factory=dict)


class InferenceSession:
    """A model ready to run. Safe to use from several threads.

    A model whose input shapes are all known compiles in the constructor. One with open dims
    compiles at the first run, once for all shapes as far as its ops allow; its file must still be
    there.
    Large kernels are shared by `intra_op_num_threads` threads of one pool for the whole process; a
    run that finds it at work for another one goes on alone.
    """

    def __init__(
        self,
        path_or_bytes: Any,
        sess_options: SessionOptions | None = None,
        providers: Providers = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        **ignored: Any,
    ) -> None:
        """`path_or_bytes` may be an onnx.ModelProto. Errors as those of `compile`."""
        check_providers(providers)
        self._options = sess_options or SessionOptions()
        self._compile_options = checked(self._options)
        from rooftile.frontends.onnx import load, overridable, signature

        self._model = path_or_bytes
        with guarded("the model"):
            loaded = load(path_or_bytes)
            found = signature(loaded)
        self._inputs = [_node_arg(item) for item in found.inputs]
        self._outputs = [_node_arg(item) for item in found.outputs]
        self._meta = _metadata(found)
        self._input_names = [item.name for item in self._inputs]
        self._output_names = list(dict.fromkeys(item.name for item in self._outputs))
        self._every = [self._output_names.index(item.name) for item in self._outputs]
        """The place of each output among those of a program, which has none twice."""
        self._defaults = {item.name: _node_arg(item) for item in overridable(loaded)}
        self._variants: dict[frozenset[str], InferenceSession] = {}
        self._name = found.graph_name or "the model"
        self._wanted = [self._bound(item.shape) for item in self._inputs]
        self._programs = Programs(self._compile)
        self._making = threading.Lock()
        self._fixed: Compiled | None = None
        self._steps: Segmented | None = None
        self._takers: list[Taken] = []
        self._boundary = Boundary(
            [item.type for item in self._inputs],
            [self._outputs[self._every.index(n)].type for n in range(len(self._output_names))],
        )
        known = [tuple(dim for dim in shape if isinstance(dim, int)) for shape in self._wanted]
        if not all(is_tensor(item.type) for item in self._inputs):
            self._cut()
        elif list(map(len, known)) == list(map(len, self._wanted)):
            self._start(tuple(known))

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: Any = None,
    ) -> list[Array]:
        """The outputs named, or all of them, as new arrays.

        InvalidInput names the input that is missing, unknown, or of the wrong shape or type.
        Terminated where `run_options.terminate` is set, before or while it runs.
        """
        stop = stop_of(run_options)
        stop.check(self._name)
        if self._defaults and not self._defaults.keys().isdisjoint(input_feed):
            return self._variant(input_feed).run(output_names, input_feed, run_options)
        places = self._places(output_names) if output_names else self._every
        values = arrange(self._input_names, input_feed, self._name)
        compiled = self._fixed or self._compiled(values)
        if compiled is None:
            with guarded(self._name):
                outputs = self._stepwise(values, stop)
        elif self._boundary:
            entered = self._boundary.enter(values)
            outputs = self._boundary.leave(compiled.executable.run(entered, stop))
        else:
            outputs = compiled.executable.run(values, stop)
        return [outputs[place] for place in places]

    @property
    def decisions(self) -> list[Decision]:
        """What was decided for all that has run: `host` and `specialise` say what is not native."""
        if self._steps is not None:
            return list(self._steps.shared.journal)
        programs = [self._fixed] if self._fixed else self._programs.every()
        return [decision for program in programs for decision in program.journal]

    @property
    def programs(self) -> list[Program]:
        """Every program that is kept: one for each set of shapes, or those of the steps."""
        if self._steps is not None:
            return programs_of(self._steps)
        every = [self._fixed] if self._fixed else self._programs.every()
        return [compiled.program for compiled in every]

    def explanation(self, feeds: Mapping[str, Any]) -> Explanation:
        """Kernels against the roof, fusion, memory, host ops; timed on these inputs."""
        values = arrange(self._input_names, feeds, self._name)
        compiled = self._fixed or self._compiled(values)
        if compiled is not None:
            return compiled.explanation(feeds)
        if self._steps is None:
            raise AssertionError("a model that runs in steps has them")
        return explained(self._name, self._steps, Environment(self._taken(values)))

    def compiled_for(self, shapes: Mapping[str, Sequence[int]] | None = None) -> Compiled:
        """The compiled model behind the session, for these shapes where it leaves dims open."""
        if self._fixed is not None:
            return self._fixed
        if self._steps is not None:
            raise InvalidInput(f"{self._name} runs in steps: no one program is behind it")
        known = arrange(self._input_names, shapes or {}, self._name)
        return self._programs.get(self._fitting([tuple(map(int, shape)) for shape in known]))

    def get_inputs(self) -> list[NodeArg]:
        """Inputs with name, shape and type."""
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        """Outputs with name, shape and type."""
        return list(self._outputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Weights that the model lists as inputs too: a run may give them other values."""
        return list(self._defaults.values())

    def get_modelmeta(self) -> ModelMetadata:
        """What the file says about itself."""
        return self._meta

    def get_session_options(self) -> SessionOptions:
        """The options given."""
        return self._options

    def get_providers(self) -> list[str]:
        """Where it runs."""
        return [CPU]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Options by provider: there are none."""
        return {CPU: {}}

    def set_providers(self, providers: Providers = None, provider_options: Any = None) -> None:
        """Accepts what the constructor accepts."""
        check_providers(providers)

    def disable_fallback(self) -> None:
        """Nothing falls back."""

    def enable_fallback(self) -> None:
        """Nothing falls back."""

    def end_profiling(self) -> str:
        """The file of the trace: none is written yet."""
        return ""

    def io_binding(self) -> IOBinding:
        """A new binding of inputs and outputs."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: Any = None) -> None:
        """Run on what is bound."""
        iobinding.run(run_options)

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: Any = None,
    ) -> list[OrtValue]:
        """The same as `run`, with OrtValues."""
        return [OrtValue(out) for out in self.run(output_names, input_dict_ort_values, run_options)]

    def _places(self, names: Sequence[str]) -> list[int]:
        unknown = [name for name in names if name not in self._output_names]
        if unknown:
            listed = ", ".join(map(repr, self._output_names))
            raise InvalidInput(f"{self._name} has no output {unknown[0]!r}; it gives {listed}")
        return [self._output_names.index(name) for name in names]

    def _variant(self, feeds: Mapping[str, Any]) -> InferenceSession:
        """The session of the model that takes the overridden weights as inputs."""
        from rooftile.frontends.onnx import overridden

        names = frozenset(name for name in self._defaults if name in feeds)
        with self._making:
            if names not in self._variants:
                if len(self._variants) >= KEPT_VARIANTS:
                    self._variants.clear()
                model = overridden(self._model, names)
                self._variants[names] = InferenceSession(model, self._options)
            return self._variants[names]

    def _compile(self, shapes: Shapes, open_dims: bool = False) -> Compiled:
        check_shapes(self._name, shapes)
        named = dict(zip(self._input_names, shapes, strict=True))
        compiled = compile(self._model, self._compile_options, named, open_dims)
        compiled.compilation = None  # its graph holds the weights a second time
        return compiled

    def _start(self, shapes: Shapes) -> None:
        """Compile a model whose shapes are all known; cut it where it is more than one program."""
        try:
            self._fixed = self._compile(shapes)
            if not self._defaults:
                self._model = None
        except (UnsupportedOp, UnsupportedType) as error:
            self._cut(error)

    def _compiled(self, values: Sequence[Any]) -> Compiled | None:
        """The program for these inputs; None for a model that runs in steps."""
        if self._steps is not None:
            return None
        shapes = self._shapes(values)
        try:
            return self._programs.get(shapes)
        except (UnsupportedOp, UnsupportedType) as error:
            self._cut(error)
            return None

    def _cut(self, error: UnsupportedOp | UnsupportedType | None = None) -> None:
        """Run in steps from now on; the error itself where that does not help."""
        from rooftile.frontends.onnx import can_host, load, outline

        with guarded(self._name):
            whole = outline(load(self._model))
        helps = error is None or isinstance(error, (NeedsValue, NeedsHost)) or not whole.is_native
        if (
            error is not None
            and not helps
            and not (error.at >= 0 and can_host(whole.context, error.at))
        ):
            raise error
        self._takers = takers(self._inputs, self._wanted)
        self._steps = Segmented(whole, Shared(self._compile_options))

    def _stepwise(self, values: Sequence[Any], stop: Stop) -> list[Any]:
        if self._steps is None:
            raise AssertionError("a model that runs in steps has them")
        outputs = self._steps.run(Environment(self._taken(values), stop))
        # Steps hand arrays on as they are, but what comes out must belong to the caller.
        return [value.copy() if isinstance(value, np.ndarray) else value for value in outputs]

    def _taken(self, values: Sequence[Any]) -> dict[str, Any]:
        """Inputs by name, as steps take them."""
        taken = [taker.take(value) for taker, value in zip(self._takers, values, strict=True)]
        return dict(zip(self._input_names, taken, strict=True))

    def _bound(self, shape: Sequence[int | str | None]) -> list[int | str | None]:
        """A shape with overridden symbols replaced; files write 0 for a dim that is not known."""
        known = self._options.free_dimensions
        bound = [known.get(dim, dim) if isinstance(dim, str) else dim for dim in shape]
        return [None if dim == 0 else dim for dim in bound]

    def _shapes(self, values: Sequence[Any]) -> Shapes:
        try:
            return self._fitting([np.shape(value) for value in values])
        except ValueError as error:
            raise InvalidInput(
                f"the inputs of {self._name} must be arrays; one cannot be read: {error}"
            ) from error

    def _fitting(self, shapes: Sequence[tuple[int, ...]]) -> Shapes:
        """The shapes themselves; InvalidInput where one contradicts the model."""
        for name, shape, wanted in zip(self._input_names, shapes, self._wanted, strict=True):
            fits = len(shape) == len(wanted) and all(
                not isinstance(dim, int) or dim == extent
                for dim, extent in zip(wanted, shape, strict=True)
            )
            if not fits:
                shown = ", ".join("?" if dim is None else str(dim) for dim in wanted)
                raise InvalidInput(
                    f"input {name!r} has the shape {list(shape)}, the model takes [{shown}]"
                )
        return tuple(shapes)


def _node_arg(item: Any) -> NodeArg:
    return NodeArg(item.name, list(item.shape), item.type)


def _metadata(found: Any) -> ModelMetadata:
    return ModelMetadata(
        found.producer_name,
        found.graph_name,
        found.graph_description,
        found.domain,
        found.description,
        found.version,
        dict(found.custom_metadata_map),
    )
