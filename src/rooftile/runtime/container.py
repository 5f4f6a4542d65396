"""The file that a compiled model is saved in: magic, header, program text, code, constants.

    8 bytes  magic, ends with the version of the format
    8 bytes  length of the header, little-endian
    header   JSON: sizes, digest of all, target, symbols, notes
    sections program, code, constants, each at a multiple of 64 bytes, code of 4096

Code and constants stay in the file, mapped into memory, so processes share them.

The file holds machine code: load only files from people whose programs you would run.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rooftile.core.errors import InvalidIR, InvalidModel, NativeError
from rooftile.ir.program import parse, to_text
from rooftile.native import FilePart, Library, Target, host_target
from rooftile.runtime.executable import Executable
from rooftile.runtime.host_call import HostFunction
from rooftile.runtime.template import Template

MAGIC = b"ROOFTIL\x02"
_ALIGNS = (64, 4096, 64)
"""Of program, code and constants."""
_START = len(MAGIC) + 8
_BLOCK = 1 << 16
"""Bytes of constants that one sum stands for."""


@dataclass(frozen=True)
class Saved:
    """What a file held: a program, of open dims or not, and the notes of whoever saved it."""

    made: Executable | Template
    notes: Mapping[str, Any] = field(default_factory=dict)


def save(
    made: Executable | Template,
    path: str | os.PathLike[str],
    notes: Mapping[str, Any] | None = None,
    target: Target | None = None,
) -> None:
    """Write an executable, or one for many shapes, to one file, whole or not at all. `notes` must
    be JSON-able.

    `target`: what the code was made for, the host where None. OSError where the file cannot
    be written.
    """
    program = to_text(made.program).encode()
    sections: list[Any] = [program, made.code, made.constants]
    header = {
        "target": asdict(target or host_target()),
        "symbols": made.functions,
        "sizes": [len(section) for section in sections],
        "notes": dict(notes or {}),
    }
    header["digest"] = _digest(header, sections)
    encoded = json.dumps(header).encode()
    _write(Path(path), [MAGIC + len(encoded).to_bytes(8, "little") + encoded, *sections])


def load(
    path: str | os.PathLike[str], host_functions: Mapping[str, HostFunction] | None = None
) -> Saved:
    """Read what `save` wrote; constants stay in the file and are mapped into memory.

    InvalidModel, naming the file, where it is not such a file, is cut short or damaged, or was
    made for a CPU that this one is not.
    """
    name = os.fspath(path)
    try:
        file = open(path, "rb")  # noqa: SIM115 (closed below)
    except OSError as error:
        raise InvalidModel(f"{name} cannot be read: {error.strerror or error}") from error
    with file:
        return _load(_mapped(file.fileno(), name), file.fileno(), name, host_functions)


def _mapped(descriptor: int, name: str) -> mmap.mmap:
    try:
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    except ValueError as error:  # an empty file cannot be mapped
        raise InvalidModel(f"{name} is empty, not a saved model") from error
    except OSError as error:
        raise InvalidModel(f"{name} cannot be read: {error.strerror or error}") from error


def _load(
    mapped: mmap.mmap,
    descriptor: int,
    name: str,
    host_functions: Mapping[str, HostFunction] | None,
) -> Saved:
    header, end = _read_header(mapped, name)
    sections, starts = _sections(mapped, header["sizes"], end, name)
    text, code, constants = sections
    if _digest(header, sections) != header.get("digest"):
        raise InvalidModel(f"{name} is damaged: what it holds does not match its digest")
    _check_target(header["target"], name)
    try:
        program = parse(bytes(text).decode())
        functions, library = header["symbols"], Library(code, FilePart(descriptor, starts[1]))
        given = (program, code, functions, np.frombuffer(constants, np.uint8))
        if program.symbols is None:
            return Saved(Executable(*given, host_functions, library), header["notes"])
        return Saved(Template(*given, program.symbols, library), header["notes"])
    except (InvalidIR, NativeError, UnicodeDecodeError) as error:
        raise InvalidModel(f"{name} holds a program that cannot run: {error}") from error


def _digest(header: Mapping[str, Any], sections: Sequence[Any]) -> str:
    """That of the header's other fields and of the sections."""
    fields = {key: value for key, value in header.items() if key != "digest"}
    digest = hashlib.sha256(json.dumps(fields, sort_keys=True).encode())
    for section in sections[:-1]:
        digest.update(section)
    digest.update(_sums(sections[-1]))
    return digest.hexdigest()


def _sums(constants: Any) -> bytes:
    """The sums of the words of each block, and the bytes behind the last: all that damage can be
    seen by, at the speed of memory."""
    flat = np.frombuffer(constants, np.uint8)
    whole = flat.size - flat.size % _BLOCK
    sums = flat[:whole].view(np.uint64).reshape(-1, _BLOCK // 8).sum(axis=1, dtype=np.uint64)
    return bytes(sums.data) + bytes(flat[whole:].data)


def _write(path: Path, sections: Sequence[Any]) -> None:
    unique = f"{os.getpid()}-{threading.get_ident()}"
    temporary = path.with_name(f".{path.name}.{unique}.tmp")
    try:
        with open(temporary, "wb") as file:
            for section, align in zip(sections, (1, *_ALIGNS), strict=True):
                file.write(b"\0" * (-file.tell() % align))
                file.write(section)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _read_header(mapped: mmap.mmap, name: str) -> tuple[dict[str, Any], int]:
    """The header and where it ends."""
    start = mapped[:_START]
    if not start.startswith(MAGIC[:-1]):
        raise InvalidModel(f"{name} is not a saved model: it does not start with {MAGIC[:-1]!r}")
    if not start.startswith(MAGIC):
        raise InvalidModel(
            f"{name} has format {start[len(MAGIC) - 1 : len(MAGIC)].hex()}, this version of "
            f"rooftile reads {MAGIC[-1:].hex()}; compile the model again"
        )
    end = _START + int.from_bytes(start[len(MAGIC) :], "little")
    if len(start) < _START or end > len(mapped):
        raise InvalidModel(f"{name} is cut short: its header does not end")
    try:
        header = json.loads(mapped[_START:end])
    except (ValueError, RecursionError) as error:
        raise InvalidModel(f"{name} is damaged: its header is not JSON ({error})") from error
    if not _is_header(header):
        raise InvalidModel(f"{name} is damaged: its header lacks a field")
    return header, end


def _is_header(header: Any) -> bool:
    """Whether a header has the fields that are needed, of the right types."""
    if not isinstance(header, dict):
        return False
    sizes, symbols, target = (header.get(key) for key in ("sizes", "symbols", "target"))
    return (
        isinstance(sizes, list)
        and len(sizes) == len(_ALIGNS)
        and all(type(size) is int and size >= 0 for size in sizes)
        and isinstance(symbols, dict)
        and all(isinstance(symbol, str) for symbol in symbols.values())
        and isinstance(target, dict)
        and all(isinstance(target.get(key), str) for key in ("triple", "cpu", "features"))
        and isinstance(header.get("notes"), dict)
    )


def _sections(
    mapped: mmap.mmap, sizes: Sequence[int], end: int, name: str
) -> tuple[list[memoryview], list[int]]:
    """The sections, and where each starts."""
    view = memoryview(mapped)
    found, starts = [], []
    for size, align in zip(sizes, _ALIGNS, strict=True):
        start = end + -end % align
        end = start + size
        found.append(view[start:end])
        starts.append(start)
    if end != len(mapped):
        state = "cut short" if end > len(mapped) else "damaged"
        raise InvalidModel(f"{name} is {state}: {end} bytes were saved, {len(mapped)} are there")
    return found, starts


def _check_target(saved: Mapping[str, Any], name: str) -> None:
    host = host_target()
    if _system(saved["triple"]) != _system(host.triple):
        raise InvalidModel(
            f"{name} was compiled for {saved['triple']}, this is {host.triple}; compile the model "
            f"on this machine"
        )
    missing = [
        feature[1:]
        for feature in saved["features"].split(",")
        if feature.startswith("+") and not host.has(feature[1:])
    ]
    if missing:
        listed = ", ".join(missing[:8]) + (", ..." if len(missing) > 8 else "")
        raise InvalidModel(
            f"{name} was compiled for the CPU {saved['cpu']}; this one ({host.cpu}) lacks "
            f"{listed}; compile the model on this machine"
        )


def _system(triple: str) -> tuple[str, str]:
    """Architecture and operating system, without versions."""
    parts = triple.split("-")
    arch = {"arm64": "aarch64", "amd64": "x86_64"}.get(parts[0], parts[0])
    system = parts[2] if len(parts) > 2 else ""
    return arch, system.rstrip("0123456789.")
