"""Proof of a refactor: every print of the compiler is what it was at another commit.

    python tools/prints.py --against COMMIT

The proof kernels and small models of tests/ go through the code of this tree and through that of
the commit: graph, regions, tiles, program, LLVM text, Triton source. Names of prints that differ
are listed, with the first lines that do; exit 1 where any does. Machine and target are the same
for both; the kernels and models are those of this tree.
"""

from __future__ import annotations

import argparse
import difflib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MACHINE = "zen4-server"
SHOWN_LINES = 12
Prints = dict[str, str]


def write_inputs(folder: Path) -> None:
    """The kernels of this tree's tests as NAME.tile, the small models and the demo's as .onnx."""
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT / "tests" / "codegen")]
    import kernels
    import onnx
    import small_models
    import triton_texts

    from rooftile.ir.tile.text import to_text

    made = {
        "matmul_gelu": kernels.matmul_gelu(48, 64, 96, 12, 32, 16),
        "matmul_gelu_packed": kernels.matmul_gelu(
            48, 64, 96, 12, 32, 64, layout="layout 1/32 0 1%32"
        ),
        "softmax": kernels.softmax(20, 70, 4),
        "depthwise": kernels.depthwise(9, 11, 32, 3, 4, 16),
        "attention": kernels.attention(2, 40, 16, 8),
        "attention_online": kernels.attention_online(2, 16, 8, 16),
        "attention_fixed": kernels.attention_online(2, 16, 8, 16, length=40),
    }
    texts = {name: to_text(kernel) for name, kernel in made.items()}
    texts |= {
        f"corner_{name.lower()}": text
        for name, text in vars(triton_texts).items()
        if name.isupper() and isinstance(text, str)
    }
    for name, text in texts.items():
        (folder / f"{name}.tile").write_text(text, encoding="utf-8")
    for name, model in small_models.models().items():
        onnx.save(model, folder / f"{name}.onnx")
    demo = ROOT / "src" / "rooftile" / "cli" / "assets" / "digits.onnx"
    (folder / "digits.onnx").write_bytes(demo.read_bytes())


def prints(folder: Path) -> Iterator[tuple[str, str]]:
    """The name and text of each print, made with the `rooftile` that Python finds."""
    for path in sorted(folder.glob("*.tile")):
        for stage, make in _KERNEL_STAGES.items():
            text = _or_error(make, path.read_text(encoding="utf-8"))
            yield f"{path.stem}/{stage}", text
    for path in sorted(folder.glob("*.onnx")):
        yield from _model(path)


def _llvm(text: str) -> str:
    from rooftile.codegen.llvm import emit
    from rooftile.ir.tile.text import parse
    from rooftile.native import host_target

    return emit(parse(text), host_target()).text


def _triton(text: str) -> str:
    from rooftile.codegen.triton import emit
    from rooftile.ir.tile.text import parse

    return emit(parse(text)).text


def _tile(text: str) -> str:
    from rooftile.ir.tile.text import parse, to_text

    return to_text(parse(text))


_KERNEL_STAGES: dict[str, Callable[[str], str]] = {"tile": _tile, "llvm": _llvm, "triton": _triton}


def _model(path: Path) -> Iterator[tuple[str, str]]:
    from rooftile.ir import graph, program
    from rooftile.ir.tile.text import to_text
    from rooftile.pipeline import compile_model

    shapes = {"images": (4, 1, 8, 8)} if path.stem == "digits" else {}
    try:
        found = compile_model(str(path), shapes)
    except Exception as error:
        yield f"{path.stem}/error", _words(error)
        return
    yield f"{path.stem}/graph", graph.to_text(found.graph)
    yield f"{path.stem}/regions", graph.regions_to_text(found.regions)
    yield f"{path.stem}/program", program.to_text(found.program)
    for name in sorted(found.kernels):
        yield f"{path.stem}/tile/{name}", to_text(found.kernels[name])
        yield f"{path.stem}/llvm/{name}", found.llvm[name]


def _or_error(make: Callable[[str], str], text: str) -> str:
    """The print, or what stands in its way: a refactor keeps refusals too."""
    try:
        return make(text)
    except Exception as error:
        return _words(error)


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}\n"


def prints_of(tree: Path, folder: Path) -> Prints:
    """The prints of a tree, made in a process of its own; CalledProcessError where it fails."""
    # A commit knows its own names best; one from before this script is asked by this script.
    own = tree / "tools" / "prints.py"
    script = own if own.exists() else Path(__file__)
    environment = {
        **os.environ,
        "PYTHONPATH": str(tree / "src"),
        "ROOFTILE_MACHINE": MACHINE,
    }
    made = subprocess.run(
        [sys.executable, str(script), "--dump", str(folder)],
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    found: Prints = json.loads(made.stdout)
    return found


def tree_of(commit: str, folder: Path) -> Path:
    """The files of a commit, unpacked; CalledProcessError where git does not know it."""
    command = ["git", "-C", str(ROOT), "archive", commit]
    packed = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        safe: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(folder, **safe)
    return folder


def differences(old: Prints, new: Prints) -> Iterator[str]:
    """A block of lines for each print that differs or is in one of the two only."""
    for name in sorted(old.keys() | new.keys()):
        if name not in new:
            yield f"gone: {name}"
        elif name not in old:
            yield f"new: {name}"
        elif old[name] != new[name]:
            lines = difflib.unified_diff(
                old[name].splitlines(), new[name].splitlines(), "before", "after", "", "", 0, ""
            )
            shown = [line for line in lines if not line.startswith(("---", "+++"))]
            more = len(shown) - SHOWN_LINES
            cut = [*shown[:SHOWN_LINES], f"... {more} more lines"] if more > 0 else shown
            yield "\n    ".join([f"differs: {name}", *cut])


def compare(commit: str) -> int:
    """Print the differences from a commit; how many there are."""
    with tempfile.TemporaryDirectory() as temporary:
        inputs, tree = Path(temporary) / "inputs", Path(temporary) / "tree"
        inputs.mkdir()
        tree.mkdir()
        write_inputs(inputs)
        old, new = prints_of(tree_of(commit, tree), inputs), prints_of(ROOT, inputs)
        found = list(differences(old, new))
    for block in found:
        print(block)
    print(f"{len(found)} of {len(new)} prints differ from {commit}")
    return len(found)


def main(argv: list[str] | None = None) -> int:
    """0 where nothing differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    wanted = parser.add_mutually_exclusive_group(required=True)
    wanted.add_argument("--against", metavar="COMMIT", help="the commit to compare with")
    wanted.add_argument("--dump", type=Path, metavar="FOLDER", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.dump is not None:
        json.dump(dict(prints(arguments.dump)), sys.stdout, indent=1)
        return 0
    try:
        return 1 if compare(arguments.against) else 0
    except subprocess.CalledProcessError as error:
        print(f"error: {' '.join(map(str, error.cmd[:4]))} ... failed", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
