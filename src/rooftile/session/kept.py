"""Sessions that are kept on disk: what a model says of itself, and the programs made of it.

Entries go by the content of the model, by options and CPU, and by the code of this package. A
session that finds all it needs imports neither the compiler nor onnx.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from rooftile.core.errors import InvalidModel
from rooftile.core.options import CompileOptions
from rooftile.core.signature import Signature
from rooftile.core.version import fingerprint
from rooftile.native import cache_folder, host_target
from rooftile.native.bounds import checks_bounds
from rooftile.native.cache import FileCache, seal, touch, unsealed
from rooftile.native.files import remove, write_atomic
from rooftile.runtime import Saved, Template
from rooftile.runtime import load as load_file
from rooftile.session.compiled import Compiled, journal_of, write
from rooftile.session.programs import Shapes

SWITCH = "ROOFTILE_PROGRAMS"
"""Environment variable: 0 keeps no programs on disk and looks for none."""
MOST_TEMPLATES = 4
"""How many programs of open dims are kept of one model."""
LEAST_S = 0.02
"""What was compiled in less is not worth a file."""
_CHUNK = 1 << 20
_SPARED, _MOST_LINES = "spared.txt", 1000
_NUMBER = re.compile(r"[0-9]+\.[0-9]+")


class ProgramCache(FileCache):
    """Files of sessions by key: signatures as JSON, programs as `runtime.save` writes them."""

    suffix = ".program"


def program_cache() -> ProgramCache:
    """The cache of programs under `cache_folder()`."""
    return _cache_at(cache_folder() / "programs")


@lru_cache(maxsize=8)
def _cache_at(folder: Path) -> ProgramCache:
    return ProgramCache(folder, limit_bytes=4 << 30)


def spare(folder: Path, seconds: float) -> None:
    """Note that a program of the folder spared so much compilation."""
    try:
        with (folder / _SPARED).open("a", encoding="ascii") as file:
            file.write(f"{seconds:.3f}\n")
    except OSError:  # a folder that cannot be written
        return


def spared(folder: Path) -> float:
    """The seconds of compilation that the programs of a folder spared so far."""
    path = folder / _SPARED
    try:
        lines = path.read_text(encoding="ascii", errors="replace").split()
    except OSError:
        return 0.0
    total = sum(float(line) for line in lines if _NUMBER.fullmatch(line))
    if len(lines) > _MOST_LINES:
        write_atomic(path, f"{total:.3f}\n".encode())
    return total


class Kept:
    """What the disk holds of one model under some options. Nothing here fails: what cannot be read
    or written is not there."""

    def __init__(self, key: str, folder: Path | None) -> None:
        """`key` stands for model, options, CPU and code; external data lies in `folder`."""
        self.key = key
        self._name = key
        """The key of the programs."""
        self.folder = folder
        self.cache = program_cache()
        self._record: dict[str, Any] | None = None
        self._is_whole = True

    def signature(self) -> Signature | None:
        """What the model takes and gives, where an earlier session noted it."""
        path = self.cache.path(f"{self.key}-signature")
        try:
            content = unsealed(path.read_bytes())
        except OSError:
            return None
        if content is None:
            remove(path)
            return None
        record = json.loads(content)
        if self._digests(record["external"]) != record["external"]:
            return None
        touch(path)
        self._know(record["external"])
        return Signature.of_record(record["signature"])

    def note(self, signature: Signature, external: list[str]) -> None:
        """Remember a signature, and what the files of external data hold now: both are written with
        the first program."""
        digests = self._digests(external)
        self._record = {"signature": signature.record(), "external": digests}
        self._is_whole = None not in digests.values()
        self._know(digests)

    def _know(self, external: Mapping[str, str | None]) -> None:
        """Programs go by what external data holds as well."""
        if external:
            text = repr((self.key, sorted(external.items())))
            self._name = hashlib.sha256(text.encode()).hexdigest()[:40]

    def program(self, shapes: Shapes) -> Compiled | None:
        """A program that serves these shapes."""
        for name in (_of_shapes(shapes), *map(_of_template, range(MOST_TEMPLATES))):
            saved = self._read(name)
            if saved is None:
                continue
            made = saved.made
            executable = made.bind(shapes) if isinstance(made, Template) else made
            if executable is not None:
                spare(self.cache.folder, float(saved.notes.get("seconds", 0)))
                template = made if isinstance(made, Template) else None
                return Compiled(executable, journal_of(saved), template=template)
        return None

    def keep(self, compiled: Compiled, shapes: Shapes, seconds: float) -> None:
        """Keep a program that took so long to compile."""
        path = self._place(compiled, shapes)
        if seconds < LEAST_S or path is None or not (self._record is None or self._is_whole):
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write(compiled, path, seconds=seconds)
            self.cache.added(path.stat().st_size)
        except OSError:  # a folder that cannot be written, or a full disk
            return
        content = seal(json.dumps(self._record).encode())
        if self._record and write_atomic(self.cache.path(f"{self.key}-signature"), content):
            self.cache.added(len(content))
            self._record = None

    def _place(self, compiled: Compiled, shapes: Shapes) -> Path | None:
        """Where a program goes; None where all places are taken."""
        if compiled.template is None:
            return self.cache.path(f"{self._name}-{_of_shapes(shapes)}")
        places = [self.cache.path(f"{self._name}-{_of_template(n)}") for n in range(MOST_TEMPLATES)]
        return next((path for path in places if not path.exists()), None)

    def _read(self, name: str) -> Saved | None:
        path = self.cache.path(f"{self._name}-{name}")
        if not path.exists():
            return None
        try:
            saved = load_file(path)
        except InvalidModel:
            remove(path)
            return None
        touch(path)
        return saved

    def _digests(self, names: Iterable[str]) -> dict[str, str | None]:
        """Those of files of external data; None for one that cannot be read."""
        return {name: self._digest(name) for name in names}

    def _digest(self, name: str) -> str | None:
        if self.folder is None:
            return None
        try:
            base, path = self.folder.resolve(), (self.folder / name).resolve()
            return digest_of(path) if path.is_relative_to(base) else None
        except (OSError, ValueError):
            return None


def kept(model: Any, options: CompileOptions) -> Kept | None:
    """Where sessions of a model are kept; None where they cannot be: a model that is neither a path
    nor bytes, or a machine without a place for them."""
    if os.environ.get(SWITCH) == "0":
        return None
    try:
        if isinstance(model, (str, Path)):
            content, folder = digest_of(Path(model)), Path(model).parent
        elif isinstance(model, bytes):
            content, folder = hashlib.sha256(model).hexdigest(), None
        else:
            return None
    except (OSError, ValueError):
        return None
    where = (host_target(), checks_bounds(), os.environ.get("ROOFTILE_MACHINE"), fingerprint())
    text = repr((content, sorted(asdict(options).items()), where))
    return Kept(hashlib.sha256(text.encode()).hexdigest()[:40], folder)


def digest_of(path: Path) -> str:
    """SHA-256 of a file, as hex. OSError where it cannot be read, or is no plain file."""
    if not path.is_file():
        raise OSError(f"{path} is no file")
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _of_shapes(shapes: Shapes) -> str:
    return hashlib.sha256(repr(shapes).encode()).hexdigest()[:16]


def _of_template(number: int) -> str:
    return f"open{number}"
