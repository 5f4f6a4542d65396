"""A compiled model: call it, explain it, save it, load it."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rooftile.core.errors import InvalidInput, MissingInput
from rooftile.core.journal import Decision, Journal
from rooftile.core.options import CompileOptions
from rooftile.core.symbolic import Symbols
from rooftile.ir.program import Program
from rooftile.runtime import Executable, Saved, Template
from rooftile.runtime import load as load_executable
from rooftile.runtime import save as save_executable
from rooftile.session.guard import check_memory, guarded
from rooftile.session.options import SessionOptions, compile_options
from rooftile.session.values import Array, OrtValue

if TYPE_CHECKING:
    from rooftile.report import Explanation


class Compiled:
    """A model compiled for one set of input shapes, or for all where dims were left open. Safe to
    call from several threads.

    `executable` runs it, `program` is what it runs, `journal` what was decided on the way: those of
    the shapes at hand. `template` serves other shapes with the same code, where dims were left
    open. `compilation` holds the pipeline's stages; None for a model that was loaded.
    """

    def __init__(
        self,
        executable: Executable,
        journal: Journal,
        compilation: Any = None,
        template: Template | None = None,
    ) -> None:
        self.executable = executable
        self.journal = journal
        self.compilation = compilation
        self.template = template
        self.input_names = [port.name for port in executable.program.inputs]
        self.output_names = [port.name for port in executable.program.outputs]

    @property
    def program(self) -> Program:
        """Buffers and steps."""
        return self.executable.program

    def __call__(self, *arrays: Any, **named: Any) -> list[Array]:
        """The outputs, in order. Inputs come in order, by keyword, or as one dict by name.

        InvalidInput for a missing, unknown or unfit input, and for shapes for which what was
        assumed of open dims does not hold.
        """
        if not named and len(arrays) == len(self.input_names) and dict not in map(type, arrays):
            values: tuple[Any, ...] | list[Any] = arrays
        else:
            values = self.arrange(self._named(arrays, named))
        return (self.executable if self.template is None else self._fitting(values)).run(values)

    def _named(self, arrays: Sequence[Any], named: dict[str, Any]) -> dict[str, Any]:
        """All inputs by name."""
        if len(arrays) == 1 and isinstance(arrays[0], Mapping):
            return {**arrays[0], **named}
        if arrays:
            twice = [name for name in self.input_names[: len(arrays)] if name in named]
            if len(arrays) > len(self.input_names) or twice:
                raise InvalidInput(
                    f"{self.program.name} takes {_listed(self.input_names)}; got {len(arrays)} "
                    f"arrays in order" + (f" and {_listed(twice)} by name too" if twice else "")
                )
        return {**dict(zip(self.input_names, arrays, strict=False)), **named}

    def _fitting(self, values: Sequence[Any]) -> Executable:
        """The program for the shapes of these inputs."""
        assert self.template is not None
        shapes = list(map(np.shape, values))
        found = self.template.bind(shapes)
        if found is None:
            assumed = ", ".join(map(str, self.template.symbols.guards)) or "every dim is 2 or more"
            raise InvalidInput(
                f"{self.program.name} was compiled for inputs like "
                f"{_shown(port.shape for port in self.template.program.inputs)} where {assumed}; "
                f"compile it again for {_shown(shapes)}"
            )
        return found

    def arrange(self, feeds: Mapping[str, Any]) -> list[Any]:
        """Inputs by name in the program's order; InvalidInput for missing and unknown names."""
        return arrange(self.input_names, feeds, self.program.name)

    def explain(self, feeds: Mapping[str, Any] | None = None) -> str:
        """What the model became, as text: kernels against the roof, fusion, memory.

        With inputs by name each kernel is timed on them; without, times are predictions.
        """
        from rooftile.report import render

        return render(self.explanation(feeds))

    def explanation(self, feeds: Mapping[str, Any] | None = None) -> Explanation:
        """The same as a record; `to_dict` gives it as JSON-able values."""
        from rooftile.machine import current
        from rooftile.report import explain

        seconds = None if feeds is None else self.executable.profile(self.arrange(feeds))
        return explain(self.program, self.journal, current(), seconds)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write the explanation as a page of HTML."""
        title = html.escape(self.program.name)
        body = html.escape(self.explain())
        Path(path).write_text(
            f"<!doctype html>\n<meta charset=utf-8>\n<title>{title}</title>\n<pre>\n{body}</pre>\n",
            encoding="utf-8",
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one file that `load` runs on CPUs of this kind, without compiler or onnx."""
        write(self, path)


def compile(
    model: Any,
    options: SessionOptions | CompileOptions | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    open_dims: bool = False,
) -> Compiled:
    """Compile a model: a path, bytes or an onnx.ModelProto.

    `shapes`: the shape of each input by name, needed where the model leaves dims open. With
    `open_dims` what the model leaves open stays so, and the result has a `template`.
    InvalidModel, UnsupportedOp, UnsupportedType or InvalidOption say what stands in the way.
    """
    from rooftile.pipeline import compile_model

    journal = Journal()
    wanted = {name: tuple(map(int, shape)) for name, shape in (shapes or {}).items()}
    with guarded("the model"):
        symbols = Symbols() if open_dims else None
        compilation = compile_model(model, wanted, compile_options(options), journal, symbols)
    check_memory(compilation.executable.program)
    return Compiled(compilation.executable, journal, compilation, compilation.template)


def load(path: str | os.PathLike[str]) -> Compiled:
    """Load what `Compiled.save` wrote. InvalidModel where the file does not fit this machine.

    The file holds machine code: load only files that you trust as you trust a program.
    """
    saved = load_executable(path)
    if isinstance(saved.made, Template):
        return Compiled(saved.made.at_hand(), journal_of(saved), template=saved.made)
    return Compiled(saved.made, journal_of(saved))


def write(compiled: Compiled, path: str | os.PathLike[str], **notes: Any) -> None:
    """Write a compiled model to one file, with these notes beside its journal."""
    notes["journal"] = [asdict(decision) for decision in compiled.journal]
    made = compiled.executable if compiled.template is None else compiled.template
    save_executable(made, path, json.loads(json.dumps(notes, default=str)))


def journal_of(saved: Saved) -> Journal:
    """The journal that `write` kept with a program."""
    entries = saved.notes.get("journal", ())
    return Journal(tuple(Decision(**{**e, "subject": tuple(e["subject"])}) for e in entries))


def arrange(names: Sequence[str], feeds: Mapping[str, Any], model: str) -> list[Any]:
    """The values of `feeds` in the order of `names`, OrtValues as arrays.

    MissingInput for missing names, InvalidInput for unknown ones.
    """
    try:
        values = [feeds[name] for name in names]
    except (KeyError, TypeError, IndexError):
        if not isinstance(feeds, Mapping):
            raise InvalidInput(
                f"inputs are given as a dict by name, not as {type(feeds).__name__}"
            ) from None
        missing = _listed([name for name in names if name not in feeds])
        raise MissingInput(
            f"{model} needs the inputs {_listed(names)}; missing: {missing}"
        ) from None
    if len(feeds) != len(names):
        unknown = _listed([name for name in feeds if name not in names])
        raise InvalidInput(f"{model} has no input {unknown}; it takes {_listed(names)}")
    if OrtValue in map(type, values):
        return [value.held if isinstance(value, OrtValue) else value for value in values]
    return values


def _shown(shapes: Iterable[Sequence[object]]) -> str:
    return ", ".join(f"[{', '.join(map(str, shape))}]" for shape in shapes)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names)) or "nothing"
