"""The ONNX reader: a model file becomes a Graph of canonical ops. Files are not trusted."""

from rooftile.frontends.onnx.load import load
from rooftile.frontends.onnx.part import Part, read_part
from rooftile.frontends.onnx.read import read
from rooftile.frontends.onnx.segments import (
    ControlStep,
    HostStep,
    Outline,
    Step,
    can_host,
    host_part,
    outline,
    value_part,
)
from rooftile.frontends.onnx.signature import Argument, Signature, signature
from rooftile.frontends.onnx.weights import overridable, overridden, replaced

__all__ = [
    "Argument",
    "ControlStep",
    "HostStep",
    "Outline",
    "Part",
    "Signature",
    "Step",
    "can_host",
    "host_part",
    "load",
    "outline",
    "overridable",
    "overridden",
    "read",
    "read_part",
    "replaced",
    "signature",
    "value_part",
]
