"""Which function reads which ONNX op, by domain and by the opset that introduced the form."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rooftile.frontends.onnx.call import Call, Result

Reader = Callable[["Call"], "Result"]
_READERS: dict[tuple[str, str], list[tuple[int, Reader]]] = {}


def reads(op: str, *, since: int = 1, domain: str = "") -> Callable[[Reader], Reader]:
    """Register a function for `op` from opset `since` until a later form of the op, if any."""

    def register(reader: Reader) -> Reader:
        forms = _READERS.setdefault((domain, op), [])
        forms.append((since, reader))
        forms.sort(key=lambda form: form[0])
        return reader

    return register


def find(domain: str, op: str, opset: int) -> Reader | None:
    """The newest form that is not newer than the model's opset."""
    found = None
    for since, reader in _READERS.get((domain, op), ()):
        if since <= opset:
            found = reader
    return found


def known() -> list[tuple[str, str]]:
    """(domain, op) of every op that can be read, sorted."""
    return sorted(_READERS)
