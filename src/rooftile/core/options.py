"""What a compilation is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from rooftile.core.errors import InvalidOption

LEVELS = (0, 1)
PRECISIONS = ("keep", "bf16", "fp16", "int8", "auto")


@dataclass(frozen=True)
class CompileOptions:
    """Options of a compilation; InvalidOption for a value outside its range.

    `level` 0 does no rewrite that can change values beyond the order of sums. `fuse`: join nodes
    into kernels. `fast_math`: approximations with a documented bound, None for the default of the
    level. `precision`: "keep" computes in the model's own types. `threads`: how many
    may share a kernel.
    """

    level: int = 1
    fuse: bool = True
    fast_math: bool | None = None
    precision: str = "keep"
    threads: int = 1

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise InvalidOption(f"level {self.level!r} is not one of {_listed(LEVELS)}")
        if self.precision not in PRECISIONS:
            raise InvalidOption(f"precision {self.precision!r} is not one of {_listed(PRECISIONS)}")
        if self.fast_math not in (None, True, False):
            raise InvalidOption(f"fast_math {self.fast_math!r} is not None, True or False")
        if not isinstance(self.threads, int) or self.threads < 1:
            raise InvalidOption(f"threads {self.threads!r} is not a count of at least 1")


def _listed(values: tuple[object, ...]) -> str:
    return ", ".join(map(repr, values))
