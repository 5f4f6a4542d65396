"""Functions of the module, as onnxruntime has them."""

from __future__ import annotations

from typing import Any

from rooftile.core.errors import InvalidOption
from rooftile.core.version import version
from rooftile.session.notices import say_once, set_severity
from rooftile.session.providers import CPU

_SEVERITIES = range(5)


def get_available_providers() -> list[str]:
    """The providers that a session can be given."""
    return [CPU]


def get_all_providers() -> list[str]:
    """The same: nothing is left out of this build."""
    return [CPU]


def get_device() -> str:
    """What models run on."""
    return "CPU"


def get_version_string() -> str:
    """The version of rooftile."""
    return version()


def get_build_info() -> str:
    """The version again; there is nothing else to tell."""
    return f"rooftile {get_version_string()}"


def set_default_logger_severity(severity: int) -> None:
    """What the logger "rooftile" says from now on: what is at least so severe, 0 (verbose) to 4
    (fatal). InvalidOption outside."""
    if severity not in _SEVERITIES:
        raise InvalidOption(f"logger severity {severity!r} is not one of 0 to 4")
    set_severity(severity)


def set_default_logger_verbosity(verbosity: int) -> None:
    """Accepted: nothing is logged as a model runs."""


def set_seed(seed: int) -> None:
    """Accepted: a random op is seeded by its attribute, or by the system."""
    say_once("set_seed", "has no effect: give the random ops of the model a seed")


def set_global_thread_pool_sizes(intra_op: int, inter_op: int) -> None:
    """Accepted: all sessions share one pool, as large as the largest of them asks for."""
    say_once("set_global_thread_pool_sizes", "has no effect: set intra_op_num_threads of sessions")


def disable_telemetry_events() -> None:
    """Nothing to disable: there is no telemetry."""


def enable_telemetry_events() -> None:
    """Nothing is enabled: there is no telemetry."""


def preload_dlls(*libraries: Any, **more: Any) -> None:
    """Nothing to load."""
