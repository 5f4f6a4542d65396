"""InferenceSession: a model that runs, with the calls that onnxruntime has."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from time import perf_counter
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
from rooftile.core.signature import Signature
from rooftile.ir.program import Program
from rooftile.native import NEVER, Stop
from rooftile.native.locks import new_lock
from rooftile.runtime import Executable
from rooftile.session.asynchronous import Callback, run_apart
from rooftile.session.binding import IOBinding, written_into
from rooftile.session.compiled import Compiled, arrange, compile
from rooftile.session.explanation import explained, programs_of
from rooftile.session.fitting import closed, fitting, shape_of, wanted
from rooftile.session.guard import check_memory, check_shapes, guarded
from rooftile.session.kept import kept
from rooftile.session.narrow import Boundary
from rooftile.session.notices import say_what_has_no_effect
from rooftile.session.options import SessionOptions, stop_of
from rooftile.session.options import compile_options as checked
from rooftile.session.programs import Programs, Shapes
from rooftile.session.providers import Providers, RunsOnTheCPU, check_providers
from rooftile.session.segment import Environment, Shared
from rooftile.session.segmented import Segmented
from rooftile.session.signature import (
    ModelMetadata,
    NodeArg,
    fixed_dims,
    metadata,
    node_arg,
    with_initializers,
)
from rooftile.session.taking import Taken, is_tensor, takers
from rooftile.session.trace import Trace, trace_of
from rooftile.session.values import Array, OrtValue
from rooftile.session.weakly import weakly

if TYPE_CHECKING:
    from rooftile.report import Explanation

KEPT_VARIANTS = 8
"""For how many sets of overridden weights."""


class InferenceSession(RunsOnTheCPU):
    """A model ready to run. Safe to use from several threads.

    A model whose input shapes are all known compiles in the constructor. One with open dims
    compiles at the first run, once for all shapes as far as its ops allow; its file must still be
    there.
    Large kernels are shared by `intra_op_num_threads` threads of one pool for the whole process; a
    run that finds it at work for another one goes on alone.
    """

    _execute = staticmethod(Executable.run)

    def __init__(
        self,
        path_or_bytes: Any,
        sess_options: SessionOptions | None = None,
        providers: Providers = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        trace: Trace | None = None,
        **ignored: Any,
    ) -> None:
        """`path_or_bytes` may be an onnx.ModelProto. Errors as those of `compile`.

        `trace`: where steps are noted, instead of a file of its own where the options ask for one.
        """
        check_providers(providers, provider_options)
        self._options = sess_options or SessionOptions()
        self._compile_options = checked(self._options)
        say_what_has_no_effect(self._options, ignored)
        self._trace = trace or trace_of(self._options)
        # Libraries that are built on onnxruntime read this name.
        is_path = isinstance(path_or_bytes, (str, os.PathLike))
        self._model_path = os.fspath(path_or_bytes) if is_path else None
        self._model = path_or_bytes
        changed = bool(self._options.initializers)
        self._kept = None if changed else kept(self._model, self._compile_options)
        found = self._signature()
        known = fixed_dims(found.inputs, self._options)
        self._inputs = [node_arg(item, known) for item in found.inputs]
        self._outputs = [node_arg(item, known) for item in found.outputs]
        self._meta = metadata(found)
        self._input_names = [item.name for item in self._inputs]
        self._output_names = list(dict.fromkeys(item.name for item in self._outputs))
        self._every = [self._output_names.index(item.name) for item in self._outputs]
        """The place of each output among those of a program, which has none twice."""
        self._whole = self._every if len(self._every) == len(self._output_names) else None
        """The same where that is no change."""
        self._defaults = {item.name: node_arg(item, known) for item in found.overridable}
        self._variants: dict[frozenset[str], InferenceSession] = {}
        self._name = found.graph_name or "the model"
        ranked = [item.ranked for item in found.inputs]
        self._wanted = list(map(wanted, self._inputs, ranked))
        self._programs = Programs(weakly(self._compile))
        self._making = new_lock()
        self._fixed: Compiled | None = None
        self._steps: Segmented | None = None
        self._takers: list[Taken] = []
        self._boundary = Boundary(
            [item.type for item in self._inputs],
            [self._outputs[self._every.index(n)].type for n in range(len(self._output_names))],
        )
        shapes = [closed(shape) for shape in self._wanted]
        if not all(is_tensor(item.type) for item in self._inputs):
            self._cut()
        elif None not in shapes:
            self._start(tuple(shape for shape in shapes if shape is not None))
        if self._trace is not None:
            self._trace.follow_session(self, whole_runs=trace is None)

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: Any = None,
        into: Mapping[str, Array] | None = None,
    ) -> list[Array]:
        """The outputs named, or all of them, as new arrays, or as those of `into`, by name, into
        which they could be written directly.

        InvalidInput names the input that is missing, unknown, or of the wrong shape or type.
        Terminated where `run_options.terminate` is set, before or while it runs.
        """
        stop = NEVER if run_options is None else stop_of(run_options)
        if stop is not NEVER:
            stop.check(self._name)
        if self._defaults and not self._defaults.keys().isdisjoint(input_feed):
            return self._variant(input_feed).run(output_names, input_feed, run_options, into)
        places = self._places(output_names) if output_names else self._every
        values = arrange(self._input_names, input_feed, self._name)
        compiled = self._fixed or self._compiled(values)
        if compiled is None:
            with guarded(self._name):
                outputs = self._stepwise(values, stop)
        elif self._boundary:
            entered = self._boundary.enter(values)
            outputs = self._boundary.leave(self._execute(compiled.executable, entered, stop))
        elif into:
            targets = written_into(compiled.executable, self._output_names, values, into)
            outputs = self._execute(compiled.executable, values, stop, targets)
        else:
            outputs = self._execute(compiled.executable, values, stop)
        return outputs if places is self._whole else [outputs[place] for place in places]

    @property
    def decisions(self) -> list[Decision]:
        """What was decided for all that has run: `host` and `specialise` say what is not native."""
        if self._steps is not None:
            return list(self._steps.shared.journal)
        programs = [self._fixed] if self._fixed else self._programs.every()
        journals = {id(program.journal): program.journal for program in programs}
        return [decision for journal in journals.values() for decision in journal]

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

    def end_profiling(self) -> str:
        """Write what was traced and trace no more; the name of the file, "" where there is none.

        Without this call the file is written when the session goes. Chrome opens it.
        """
        return self._trace.write() if self._trace is not None else ""

    def get_profiling_start_time_ns(self) -> int:
        """When tracing began, on the monotonic clock; 0 where there is none."""
        return self._trace.start_ns if self._trace is not None else 0

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

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callback,
        user_data: Any,
        run_options: Any = None,
    ) -> None:
        """Run in a thread, which calls `callback(outputs, user_data, error)`; the error is "" where
        all went well, else there are no outputs. Missing inputs are refused at once."""
        arrange([name for name in self._input_names if name not in input_feed], {}, self._name)
        run_apart(self, (output_names, input_feed, run_options), callback, user_data)

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
                self._variants[names] = InferenceSession(model, self._options, trace=self._trace)
            return self._variants[names]

    def _signature(self) -> Signature:
        """What the model takes and gives: from disk, or from the model, which is looked over."""
        found = self._kept.signature() if self._kept else None
        if found is not None:
            return found
        from rooftile.frontends.onnx import external_files, load, signature

        with guarded("the model"):
            self._model = with_initializers(self._model, self._options)
            loaded = load(self._model)
            found = signature(loaded)
        if self._kept:
            self._kept.note(found, external_files(loaded))
        return found

    def _compile(self, shapes: Shapes, open_dims: bool = False) -> Compiled:
        check_shapes(self._name, shapes)
        compiled = self._kept.program(shapes) if self._kept else None
        if compiled is not None:
            check_memory(compiled.program)
            return compiled
        began = perf_counter()
        named = dict(zip(self._input_names, shapes, strict=True))
        compiled = compile(self._model, self._compile_options, named, open_dims)
        compiled.compilation = None  # its graph holds the weights a second time
        if self._kept:
            self._kept.keep(compiled, shapes, perf_counter() - began)
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
        try:
            # Shapes for which there is a program fit the model.
            found = self._programs.find(tuple([value.shape for value in values]))
        except (AttributeError, TypeError):  # lists, and whatever else stands for arrays
            found = None
        if found is not None:
            return found
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
        self._steps = Segmented(whole, Shared(self._compile_options, trace=self._trace))

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

    def _shapes(self, values: Sequence[Any]) -> Shapes:
        return self._fitting(list(map(shape_of, self._input_names, values)))

    def _fitting(self, shapes: Sequence[tuple[int, ...]]) -> Shapes:
        return tuple(map(fitting, self._input_names, shapes, self._wanted))
