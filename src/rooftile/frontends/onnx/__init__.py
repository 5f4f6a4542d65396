"""The ONNX reader: a model file becomes a Graph of canonical ops. Files are not trusted."""

from rooftile.frontends.onnx.read import read
from rooftile.frontends.onnx.signature import Argument, Signature, signature

__all__ = ["Argument", "Signature", "read", "signature"]
