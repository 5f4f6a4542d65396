"""Triton source to a loaded function, or to machine code without a GPU. Imports triton lazily."""

from __future__ import annotations

import hashlib
import importlib.util
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rooftile.codegen.triton.source import TritonSource
from rooftile.core.errors import InvalidOption

SM90 = ("cuda", 90, 32)


@dataclass(frozen=True)
class Binary:
    """Machine code of a kernel: the `cubin`, its assembly `ptx`, bytes of shared memory."""

    name: str
    cubin: bytes
    ptx: str
    shared: int


def load(source: TritonSource, folder: Path | None = None) -> Any:
    """The jitted function of a source. Triton reads sources from files: the module is written to
    `folder`, by default one of its own under the system's temporary folder.
    """
    digest = hashlib.sha256(source.text.encode()).hexdigest()[:16]
    where = folder or Path(tempfile.mkdtemp(prefix="rooftile-triton-"))
    path = where / f"{source.name}_{digest}.py"
    path.write_text(source.text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, source.name)


def compile_sm90(source: TritonSource) -> Binary:
    """Machine code for NVIDIA's compute capability 9.0; needs triton, but no GPU.

    Pointers are taken to be 16-byte aligned. InvalidOption: triton is not installed.
    """
    try:
        import triton
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource
    except ImportError as error:
        raise InvalidOption("triton is not installed; pip install 'rooftile[triton]'") from error
    signature = source.signature
    aligned = {
        (at,): [["tt.divisibility", 16]]
        for at, kind in enumerate(signature.values())
        if kind.startswith("*")
    }
    ast = ASTSource(load(source), signature, constexprs={}, attrs=aligned)
    found = triton.compile(ast, target=GPUTarget(*SM90), options=source.options)
    shared = int(found.metadata.shared)
    return Binary(source.name, bytes(found.asm["cubin"]), str(found.asm["ptx"]), shared)
