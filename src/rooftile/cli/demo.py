"""`rooftile demo`: a trained model on a real image, explained."""

from __future__ import annotations

import argparse
import time
from importlib import resources

import numpy as np

import rooftile
from rooftile.cli import arguments as shared
from rooftile.cli.output import console, progress
from rooftile.ir.graph import Array
from rooftile.report.text import layout
from rooftile.report.units import count, percent, scaled, seconds
from rooftile.session import Compiled

_SHADES = " .:-=+*#%@"
_GREYS = 16
CALLS = 100


def add(parsers: shared.Parsers) -> None:
    """The parser of the command."""
    about = "read a handwritten digit with a small trained network, and explain the run"
    parser = shared.new_command(parsers, "demo", about, command)
    parser.add_argument(
        "--digit", type=int, default=0, metavar="N", help="which of the shipped images (default 0)"
    )
    parser.add_argument("--explain", action="store_true", help="print the whole explanation too")


def model_bytes() -> bytes:
    """The trained model: images [batch, 1, 8, 8] of 0..16 -> probabilities [batch, 10]."""
    return (resources.files("rooftile.cli") / "assets" / "digits.onnx").read_bytes()


def test_images() -> tuple[Array, Array]:
    """Images [n, 1, 8, 8] that the model was not trained on, and their labels."""
    with (resources.files("rooftile.cli") / "assets" / "digits.npz").open("rb") as file:
        archive = np.load(file, allow_pickle=False)
        return archive["images"].astype(np.float32), archive["labels"]


def command(arguments: argparse.Namespace) -> None:
    """Compile the model for all images, with and without fusion, and tell what came of it."""
    images, labels = test_images()
    if not 0 <= arguments.digit < len(labels):
        raise rooftile.InvalidInput(f"--digit must be 0 to {len(labels) - 1}")
    with progress("compiling"):
        began = time.perf_counter()
        fused = _compiled(images, rooftile.CompileOptions())
        took = time.perf_counter() - began
        plain = _compiled(images, rooftile.CompileOptions(fuse=False))
    with progress("running"):
        (probabilities,) = fused(images)
        facts = fused.explanation({"images": images})
        times = _times({"fused": fused, "plain": plain}, images)
    kernels = len(fused.program.launches)
    print(_drawn(images[arguments.digit, 0]))
    print(_prediction(probabilities[arguments.digit], int(labels[arguments.digit])))
    right = float((probabilities.argmax(1) == labels).mean())
    print(f"{percent(right)} of the {len(labels)} shipped test images are read right\n")
    taken = [row for row in facts.ledger if row.verdict == "taken"]
    saved = scaled(sum(row.bytes_saved for row in taken), "B")
    print(f"compiled in {seconds(took)}: {count(facts.total.nodes, 'node')}, ", end="")
    print(f"{kernels} kernels instead of {len(plain.program.launches)}: ", end="")
    print(f"{len(taken)} of {len(facts.ledger)} fusions paid, they spare {saved} of traffic")
    print(f"{len(labels)} images in {seconds(times['fused'])}; ", end="")
    print(f"unfused {seconds(times['plain'])} ({times['plain'] / times['fused']:.2f}x)")
    share = facts.total.limit_ms / 1e3 / times["fused"]
    print(f"that is {percent(share)} of the roof of {facts.machine['cpu']} ", end="")
    print(f"({seconds(facts.total.limit_ms / 1e3)}, bound by {facts.total.bound})")
    if arguments.explain:
        console().print("", layout(facts))
    else:
        print("next: rooftile demo --explain, rooftile explain YOUR_MODEL.onnx")


def _compiled(images: Array, options: rooftile.CompileOptions) -> Compiled:
    return rooftile.compile(model_bytes(), options, {"images": images.shape})


def _times(models: dict[str, Compiled], images: Array) -> dict[str, float]:
    """Best seconds of a call; the models take turns."""
    best = dict.fromkeys(models, float("inf"))
    for _ in range(CALLS):
        for name, model in models.items():
            began = time.perf_counter()
            model.executable.run([images])
            best[name] = min(best[name], time.perf_counter() - began)
    return best


def _drawn(image: Array) -> str:
    steps = (image / _GREYS * (len(_SHADES) - 1)).astype(int)
    return "\n".join("  " + "".join(_SHADES[step] * 2 for step in line) for line in steps)


def _prediction(probabilities: Array, label: int) -> str:
    found = int(probabilities.argmax())
    word = "right" if found == label else f"it is a {label}"
    return f"read as {found} with probability {probabilities[found]:.3f} ({word})"
