"""Providers, of which there is one, the CPU; and what that means for a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from rooftile.core.errors import InvalidOption
from rooftile.session.notices import say_once

CPU = "CPUExecutionProvider"
_RESERVED = ("CUDAExecutionProvider",)
Providers = Sequence[Any] | None
"""Names, or pairs of a name and its options."""
Self = TypeVar("Self", bound="RunsOnTheCPU")


class RunsOnTheCPU:
    """The calls of a session that are about where it runs, and where it cannot go."""

    def get_providers(self) -> list[str]:
        """Where it runs."""
        return [CPU]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Options by provider: there are none."""
        return {CPU: {}}

    def set_providers(self, providers: Providers = None, provider_options: Any = None) -> None:
        """Accepts what the constructor accepts."""
        check_providers(providers, provider_options)

    def disable_fallback(self) -> None:
        """Nothing falls back."""

    def enable_fallback(self) -> None:
        """Nothing falls back."""

    def __getstate__(self) -> Any:
        raise TypeError(
            "cannot pickle an InferenceSession: it holds machine code; make one in each process, "
            "from the model"
        )

    def __copy__(self: Self) -> Self:
        return self


def check_providers(
    providers: Providers, provider_options: Sequence[Mapping[str, Any]] | None = None
) -> None:
    """InvalidOption unless the CPU is among them, or none are named; others are said to be left
    out, and so are options."""
    given = [providers] if isinstance(providers, str) else list(providers or (CPU,))
    names = [item if isinstance(item, str) else item[0] for item in given]
    options = [*(item[1] for item in given if not isinstance(item, str)), *(provider_options or ())]
    if CPU not in names:
        if names[0] in _RESERVED:
            raise InvalidOption(
                f"{names[0]} is reserved: this version runs on the CPU only; pass "
                f"providers=[{CPU!r}] or leave it out"
            )
        raise InvalidOption(f"{names[0]} is no provider of rooftile; pass providers=[{CPU!r}]")
    for name in names:
        if name != CPU:
            say_once(f"provider {name}", "is not there; the model runs on the CPU")
    if names == [CPU] and any(options):
        say_once("provider_options", "have no effect on the CPU")
