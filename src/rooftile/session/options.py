"""Options of sessions and runs, spelled as onnxruntime spells them, and the providers."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from rooftile.core.errors import InvalidOption
from rooftile.core.options import CompileOptions
from rooftile.native import NEVER, Stop

CPU = "CPUExecutionProvider"
_RESERVED = ("CUDAExecutionProvider",)
Providers = Sequence[Any] | None
"""Names, or pairs of a name and its options."""


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


class _Entries:
    """Settings by key, kept and given back."""

    def __init__(self) -> None:
        self._entries: dict[str, str] = {}

    def _entry(self, key: str) -> str:
        if key not in self._entries:
            raise InvalidOption(f"no entry {key!r} was added to the options")
        return self._entries[key]


class SessionOptions(_Entries):
    """Options of a session. Attributes that rooftile does not know are accepted and ignored.

    `graph_optimization_level`: 0 does no rewrite that changes values. `fast_math`: None is the
    documented default. `precision`: "keep", for now the only one. `intra_op_num_threads`: 0 or a
    count; for now kernels run on one thread whatever it says.
    """

    def __init__(self) -> None:
        super().__init__()
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.graph_optimization_level: int = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.execution_mode: int = ExecutionMode.ORT_SEQUENTIAL
        self.fast_math: bool | None = None
        self.precision = "keep"
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.enable_profiling = False
        self.profile_file_prefix = "rooftile_profile"
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.optimized_model_filepath = ""
        self.use_deterministic_compute = False
        self.free_dimensions: dict[str, int] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keep a setting; none has an effect."""
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """A setting that was added; InvalidOption if it was not."""
        return self._entry(key)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fix a symbolic dim of the model's inputs."""
        if size < 0:
            raise InvalidOption(f"dim {name!r} cannot have the extent {size}")
        self.free_dimensions[name] = int(size)


class RunOptions(_Entries):
    """Options of one run: `terminate` ends it between steps and iterations, all else is ignored."""

    def __init__(self) -> None:
        super().__init__()
        self.log_severity_level = 2
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
        # One thread until kernels are parallel: predictions must be of what runs.
        options = CompileOptions(
            level=level, fast_math=options.fast_math, precision=options.precision, threads=1
        )
    found = options or CompileOptions()
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


def stop_of(options: Any) -> Stop:
    """The flag that ends a run with these options: RunOptions, or None."""
    return options.stop if isinstance(options, RunOptions) else NEVER


def check_providers(providers: Providers) -> None:
    """InvalidOption unless the CPU is among them, or none are named."""
    names = [item if isinstance(item, str) else item[0] for item in providers or (CPU,)]
    if CPU in names:
        return
    for name in names:
        if name in _RESERVED:
            raise InvalidOption(
                f"{name} is reserved: this version runs on the CPU only; pass "
                f"providers=[{CPU!r}] or leave it out"
            )
    raise InvalidOption(f"{names[0]} is no provider of rooftile; pass providers=[{CPU!r}]")


def get_available_providers() -> list[str]:
    """The providers that a session can be given."""
    return [CPU]


def get_all_providers() -> list[str]:
    """The same: nothing is left out of this build."""
    return [CPU]


def get_device() -> str:
    """What models run on."""
    return "CPU"


def set_default_logger_severity(severity: int) -> None:
    """Accepted: rooftile logs nothing. InvalidOption outside 0 (verbose) to 4 (fatal)."""
    if severity not in range(5):
        raise InvalidOption(f"logger severity {severity!r} is not one of 0 to 4")


def set_default_logger_verbosity(verbosity: int) -> None:
    """Accepted: rooftile logs nothing."""
