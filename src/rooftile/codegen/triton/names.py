"""Names of variables in a generated Triton kernel, unique and no words of Python."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Iterable

from rooftile.core.affine import Affine, Dim

_TAKEN = frozenset(keyword.kwlist) | frozenset(dir(builtins)) | {"tl", "triton", "libdevice"}


class Names:
    """Gives each name of the IR a name in Python, and new names to what is made on the way."""

    def __init__(self, known: Iterable[str]) -> None:
        self._used = set(_TAKEN)
        self._python = {name: self.fresh(name) for name in known}

    def __getitem__(self, name: str) -> str:
        return self._python[name]

    def fresh(self, hint: str) -> str:
        """A name like `hint` that was never given before."""
        name, number = hint, 1
        while name in self._used:
            name, number = f"{hint}_{number}", number + 1
        self._used.add(name)
        return name

    def extent(self, value: Dim) -> str:
        """An extent as Python text."""
        if not isinstance(value, Affine):
            return str(value)
        terms = [self[n] if coef == 1 else f"{coef} * {self[n]}" for n, coef in value.terms]
        return " + ".join(terms + ([str(value.const)] if value.const else []))
