"""What is accepted without effect is said once a process, through the logger "rooftile".

Logging rather than `warnings`: a program that turns warnings into errors goes on working, and the
severities that onnxruntime's calls set say what is heard.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rooftile.native.locks import new_lock

if TYPE_CHECKING:
    from rooftile.session.options import SessionOptions

LOGGER = logging.getLogger("rooftile")
WARNING = 2
"""onnxruntime's severity from which on a notice is heard; it has 0 (verbose) to 4 (fatal)."""
_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)
_PLANNED = "memory is planned when a model is compiled, and used again"
_WITHOUT_EFFECT = {
    "inter_op_num_threads": "kernels run one after the other, each on several threads",
    "execution_mode": "kernels run one after the other, each on several threads",
    "execution_order": "the compiler orders the kernels",
    "enable_cpu_mem_arena": _PLANNED,
    "enable_mem_pattern": _PLANNED,
    "enable_mem_reuse": _PLANNED,
    "optimized_model_filepath": "no such file is written; rooftile.compile(model).save(path) does",
    "log_verbosity_level": "nothing is logged as a model runs",
    "logid": "nothing is logged as a model runs",
}
_KNOWN_ARGUMENTS = {"enable_fallback", "read_config_from_model"}
"""Arguments of a session without effect that ask for nothing either."""
_said: set[str] = set()
_lock = new_lock()


def say_once(subject: str, message: str) -> None:
    """Log a warning about a subject, unless this process has been told."""
    with _lock:
        if subject in _said:
            return
        _said.add(subject)
    LOGGER.warning("%s: %s", subject, message)


def set_severity(severity: int) -> None:
    """What is heard from now on, in onnxruntime's severities."""
    LOGGER.setLevel(_LEVELS[severity])


def say_what_has_no_effect(options: SessionOptions, arguments: Iterable[str] = ()) -> None:
    """Name each option that is set, other than by default, and does nothing here, and each further
    argument of a session.

    Nothing is said where the options themselves ask for errors alone.
    """
    if options.log_severity_level > WARNING:
        return
    defaults = vars(type(options)())
    for name, value in vars(options).items():
        if name.startswith("_") or (name in defaults and value == defaults[name]):
            continue
        if name not in defaults:
            say_once(f"SessionOptions.{name}", "no such option is known, it has no effect")
        elif name == "inter_op_num_threads" and value == 1:
            continue  # which is so
        elif name in _WITHOUT_EFFECT:
            say_once(f"SessionOptions.{name}", f"has no effect: {_WITHOUT_EFFECT[name]}")
    for name in set(arguments) - _KNOWN_ARGUMENTS:
        say_once(f"argument {name!r} of InferenceSession", "has no effect")
    for key in options.entries:
        say_once(f"session config entry {key!r}", "has no effect")
    if options.graph_optimization_level in (1, 2, 3):
        say_once(
            "SessionOptions.graph_optimization_level",
            "is ORT_DISABLE_ALL or ORT_ENABLE_ALL here; what lies between counts as the latter",
        )
