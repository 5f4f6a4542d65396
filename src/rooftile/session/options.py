"""Options of sessions and runs, spelled as onnxruntime spells them, and the providers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from rooftile.core.errors import InvalidOption, UnsupportedOp
from rooftile.core.options import CompileOptions
from rooftile.native import MAX_THREADS, NEVER, Stop, has_pool
from rooftile.session.notices import say_once
from rooftile.session.providers import check_providers

if TYPE_CHECKING:
    from rooftile.session.values import OrtValue


class GraphOptimizationLevel(IntEnum):
    """How much a model may be rewritten; rooftile knows two levels, none and all."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(IntEnum):
    """Accepted and without effect: steps run in order."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(IntEnum):
    """Accepted and without effect: the compiler orders the kernels."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class _Entries:
    """Settings by key, kept and given back."""

    def __init__(self) -> None:
        self._entries: dict[str, str] = {}

    @property
    def entries(self) -> Mapping[str, str]:
        """The settings that were added."""
        return self._entries

    def _entry(self, key: str) -> str:
        if key not in self._entries:
            raise InvalidOption(f"no entry {key!r} was added to the options")
        return self._entries[key]


class SessionOptions(_Entries):
    """Options of a session. What has no effect here is accepted, and said once when it is used.

    `graph_optimization_level`: 0 does no rewrite that changes values. `fast_math`: None is the
    documented default. `precision`: "keep", for now the only one. `intra_op_num_threads`: how many
    threads may share a kernel; 0 for one a core that the process may use. All sessions share one
    pool of threads. `enable_profiling`: see `InferenceSession.end_profiling`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.graph_optimization_level: int = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.execution_mode: int = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order: int = ExecutionOrder.DEFAULT
        self.fast_math: bool | None = None
        self.precision = "keep"
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.enable_profiling = False
        self.profile_file_prefix = "rooftile_profile"
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.optimized_model_filepath = ""
        self.use_deterministic_compute = False
        self.use_per_session_threads = True
        self.free_dimensions: dict[str, int] = {}
        self.denoted_dimensions: dict[str, int] = {}
        self.initializers: dict[str, OrtValue] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keep a setting; none has an effect."""
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """A setting that was added; InvalidOption if it was not."""
        return self._entry(key)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fix a symbolic dim of the model's inputs."""
        self.free_dimensions[name] = _extent(name, size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Fix the dims of the model's inputs that have this denotation, such as "DATA_BATCH"."""
        self.denoted_dimensions[denotation] = _extent(denotation, size)

    def add_initializer(self, name: str, ort_value: OrtValue) -> None:
        """Give an initializer of the model other contents; a name that it lacks has no effect."""
        self.initializers[name] = ort_value

    def add_external_initializers(
        self, names: Sequence[str], ort_values: Sequence[OrtValue]
    ) -> None:
        """Give several initializers their contents: their files need not be there."""
        if len(names) != len(ort_values):
            raise InvalidOption(f"{len(names)} names for {len(ort_values)} initializers")
        self.initializers.update(zip(names, ort_values, strict=True))

    def register_custom_ops_library(self, path: str) -> None:
        """UnsupportedOp: a library holds kernels for onnxruntime's interface."""
        raise UnsupportedOp(
            f"{path}: libraries of custom ops are made for onnxruntime alone; express the op as a "
            f"function of the model"
        )

    def add_provider(self, name: str, options: Mapping[str, str]) -> None:
        """Accepts the CPU; InvalidOption for any other."""
        check_providers([(name, options)])

    def has_providers(self) -> bool:
        """Whether a provider was added that is not there anyway."""
        return False


class RunOptions(_Entries):
    """Options of one run: `terminate` ends it between steps and iterations, all else is ignored."""

    def __init__(self) -> None:
        super().__init__()
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self.stop = Stop()

    @property
    def terminate(self) -> bool:
        """Whether runs with these options end with the error Terminated; any thread may set it."""
        return self.stop.is_set

    @terminate.setter
    def terminate(self, wanted: bool) -> None:
        self.stop.set(bool(wanted))

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keep a setting."""
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        """A setting that was added; InvalidOption if it was not."""
        return self._entry(key)


def compile_options(options: SessionOptions | CompileOptions | None) -> CompileOptions:
    """Checked options of a compilation; InvalidOption for what this version cannot do."""
    if isinstance(options, SessionOptions):
        threads = options.intra_op_num_threads
        if not isinstance(threads, int) or threads < 0:
            raise InvalidOption(f"intra_op_num_threads {threads!r} is not 0 or a count")
        level = 0 if options.graph_optimization_level == 0 else 1
        options = CompileOptions(
            level=level,
            fast_math=options.fast_math,
            precision=options.precision,
            threads=threads_for(threads),
        )
    found = CompileOptions(threads=default_threads()) if options is None else options
    if not isinstance(found, CompileOptions):
        raise InvalidOption(
            f"options are SessionOptions or CompileOptions, not {type(found).__name__}"
        )
    if found.precision != "keep":
        raise InvalidOption(
            f"precision {found.precision!r} comes with quantization, which this version does not "
            f"have yet; use precision 'keep'"
        )
    return found


def default_threads() -> int:
    """One for each physical core that this process may use, by its affinity and its control
    group's quota; 1 where the platform has no pool."""
    from rooftile.machine.probe.system import core_count

    return min(core_count(), MAX_THREADS) if has_pool() else 1


def threads_for(asked: int) -> int:
    """The threads of a session that asks for so many, 0 for the default; no more than a pool has,
    and 1, which is said, where the platform has none."""
    if not asked:
        return default_threads()
    if asked > 1 and not has_pool():
        say_once("intra_op_num_threads", "kernels run on one thread: several need Linux")
        return 1
    return min(asked, MAX_THREADS)


def stop_of(options: Any) -> Stop:
    """The flag that ends a run with these options: RunOptions, or None; InvalidOption for else."""
    if options is None:
        return NEVER
    if isinstance(options, RunOptions):
        return options.stop
    raise InvalidOption(f"run options are RunOptions, not {type(options).__name__}")


def _extent(name: str, size: int) -> int:
    if size < 0:
        raise InvalidOption(f"dim {name!r} cannot have the extent {size}")
    return int(size)
