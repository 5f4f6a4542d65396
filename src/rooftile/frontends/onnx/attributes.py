"""Attributes of a node as plain values, for the steps that run on the host."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rooftile.frontends.onnx.context import array_of

_FLOAT, _INT, _STRING, _TENSOR, _FLOATS, _INTS, _STRINGS, _TYPE = 1, 2, 3, 4, 6, 7, 8, 13
_PLAIN: dict[int, Callable[[Any], Any]] = {
    _FLOAT: lambda item: float(item.f),
    _INT: lambda item: int(item.i),
    _STRING: lambda item: item.s.decode("utf-8", "replace"),
    _FLOATS: lambda item: [float(number) for number in item.floats],
    _INTS: lambda item: [int(number) for number in item.ints],
    _STRINGS: lambda item: [text.decode("utf-8", "replace") for text in item.strings],
    _TYPE: lambda item: item.tp.WhichOneof("value") or "",
}


def plain_attributes(node: Any, folder: Path | None) -> dict[str, Any]:
    """Numbers, strings, lists and arrays by name; graphs are left out."""
    found: dict[str, Any] = {}
    for item in node.attribute:
        if item.type == _TENSOR:
            found[item.name] = array_of(item.t, folder, f"in attribute {item.name}")
        elif item.type in _PLAIN:
            found[item.name] = _PLAIN[item.type](item)
    return found
