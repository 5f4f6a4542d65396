"""Lines of a generated Triton module."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rooftile.codegen.triton.names import Names

_TAB = "    "


class Writer:
    """Collects the lines of a kernel's body and the helper functions that they call."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.lines: list[str] = []
        self.helpers: dict[str, tuple[str, str]] = {}
        self.depth = 1

    def line(self, text: str) -> None:
        """Append a line at the current depth."""
        self.lines.append(_TAB * self.depth + text)

    @contextmanager
    def indented(self) -> Iterator[None]:
        """Lines inside belong to the block that the last line opened."""
        self.depth += 1
        yield
        self.depth -= 1

    def helper(self, name: str, result: str) -> str:
        """The name of a function of two values a and b."""
        if name not in self.helpers:
            self.helpers[name] = (self.names.fresh(f"combine_{name}"), result)
        return self.helpers[name][0]

    def module(self, head: str) -> str:
        """The module's text; `head` is the line that defines the kernel."""
        body = "\n".join(self.lines) + "\n"
        text = "import triton\nimport triton.language as tl\n"
        if "libdevice." in body:
            text += "from triton.language.extra import libdevice\n"
        for name, result in self.helpers.values():
            text += f"\n\n@triton.jit\ndef {name}(a, b):\n{_TAB}return {result}\n"
        return f"{text}\n\n{head}\n{body}"
