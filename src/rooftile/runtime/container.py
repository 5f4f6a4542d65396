"""The file that a compiled model is saved in: magic, header, program text, objects, constants.

    8 bytes  magic, ends with the version of the format
    8 bytes  length of the header, little-endian
    header   JSON: sizes, digests, target, symbols, notes
    sections program, objects, constants, each at a multiple of 64 bytes

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
from rooftile.native import Target, host_target
from rooftile.runtime.executable import Executable
from rooftile.runtime.host_call import HostFunction
from rooftile.runtime.template import Template

MAGIC = b"ROOFTIL\x01"
_ALIGN = 64
_START = len(MAGIC) + 8


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

    `target`: what the objects were made for, the host where None. OSError where the file cannot
    be written.
    """
    program = to_text(made.program).encode()
    sections: list[Any] = [program, *made.objects, made.constants]
    header = {
        "target": asdict(target or host_target()),
        "symbols": made.functions,
        "sizes": [len(section) for section in sections],
        "digest": _digest(sections[:-1]),
        "notes": dict(notes or {}),
    }
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
        with open(path, "rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError as error:  # an empty file cannot be mapped
        raise InvalidModel(f"{name} is empty, not a saved model") from error
    except OSError as error:
        raise InvalidModel(f"{name} cannot be read: {error.strerror or error}") from error
    header, end = _read_header(mapped, name)
    sections = _sections(mapped, header["sizes"], end, name)
    parts = [bytes(section) for section in sections[:-1]]
    if _digest(parts) != header["digest"]:
        raise InvalidModel(f"{name} is damaged: program and code do not match their digest")
    _check_target(header["target"], name)
    constants = np.frombuffer(sections[-1], np.uint8)
    try:
        program = parse(parts[0].decode())
        given = (program, parts[1:], header["symbols"], constants)
        if program.symbols is None:
            return Saved(Executable(*given, host_functions), header["notes"])
        return Saved(Template(*given, program.symbols), header["notes"])
    except (InvalidIR, NativeError, UnicodeDecodeError) as error:
        raise InvalidModel(f"{name} holds a program that cannot run: {error}") from error


def _digest(parts: Sequence[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def _write(path: Path, sections: Sequence[Any]) -> None:
    unique = f"{os.getpid()}-{threading.get_ident()}"
    temporary = path.with_name(f".{path.name}.{unique}.tmp")
    try:
        with open(temporary, "wb") as file:
            for section in sections:
                file.write(b"\0" * (-file.tell() % _ALIGN))
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
        and len(sizes) >= 2
        and all(type(size) is int and size >= 0 for size in sizes)
        and isinstance(symbols, dict)
        and all(isinstance(symbol, str) for symbol in symbols.values())
        and isinstance(target, dict)
        and all(isinstance(target.get(key), str) for key in ("triple", "cpu", "features"))
        and isinstance(header.get("notes"), dict)
    )


def _sections(mapped: mmap.mmap, sizes: Sequence[int], end: int, name: str) -> list[memoryview]:
    view = memoryview(mapped)
    found = []
    for size in sizes:
        start = end + -end % _ALIGN
        end = start + size
        found.append(view[start:end])
    if end != len(mapped):
        state = "cut short" if end > len(mapped) else "damaged"
        raise InvalidModel(f"{name} is {state}: {end} bytes were saved, {len(mapped)} are there")
    return found


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
