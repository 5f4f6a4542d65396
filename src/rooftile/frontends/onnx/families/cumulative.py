"""Sums and products along an axis."""

from __future__ import annotations

from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.registry import Reader, reads
from rooftile.ir.graph import Value


def _cumulative(op: str) -> Reader:
    def read(call: Call) -> Value:
        x = call.input(0)
        axis = call.axis(int(call.array(1, "axis").reshape(-1)[0]), x.rank)
        exclusive, reverse = call.integer("exclusive", 0), call.integer("reverse", 0)
        if 0 in x.dims:
            return x
        return call.emit(
            "cumulative", x, op=op, axis=axis, exclusive=bool(exclusive), reverse=bool(reverse)
        )

    return read


reads("CumSum")(_cumulative("sum"))
reads("CumProd")(_cumulative("prod"))
