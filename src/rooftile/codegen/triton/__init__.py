"""Tile IR to Triton: source text, and machine code through Triton's compiler."""

from rooftile.codegen.triton.compile import Binary, compile_sm90, load
from rooftile.codegen.triton.emit import emit
from rooftile.codegen.triton.source import TritonSource

__all__ = ["Binary", "TritonSource", "compile_sm90", "emit", "load"]
