"""com.microsoft DynamicQuantizeLSTM: an LSTM whose products are of 8-bit integers.

As in onnxruntime the input is quantized over all steps at once, the hidden state at each step.
"""

from __future__ import annotations

from dataclasses import replace

from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.families.quantize import dynamically, shifted
from rooftile.frontends.onnx.families.recurrent import LSTM, Layer, RecurrentNode, Values
from rooftile.frontends.onnx.registry import reads
from rooftile.ir.graph import Value


@reads("DynamicQuantizeLSTM", domain="com.microsoft")
def dynamic_quantize_lstm(call: Call) -> Values:
    """W [directions, input, 4 hidden] and R [directions, hidden, 4 hidden] with scales and zero
    points, one for a direction or one for each column."""
    return _Quantized(call, LSTM).results()


def _product(call: Call, x: Value, weight: Value, scale: Value) -> Value:
    """x, quantized, times a matrix of i32: floats again. `scale` is that of the matrix."""
    quantized, own, zero = dynamically(call, x)
    total = call.emit(
        "dot",
        shifted(call, quantized, zero),
        weight,
        lhs_contract=(x.rank - 1,),
        rhs_contract=(0,),
        lhs_batch=(),
        rhs_batch=(),
    )
    factor = call.elementwise("mul", own, scale)
    return call.elementwise("mul", call.cast(total, x.dtype), factor)


def _times(call: Call, state: Value, weights: Values) -> Value:
    return _product(call, state, weights[0], weights[-1])


class _Quantized(RecurrentNode):
    """An LSTM node whose weights come as integers, in rows of inputs."""

    def matrices(self) -> tuple[Value, Value]:
        w, r = (self.call.input(number) for number in (1, 2))
        if w.rank != 3 or r.rank != 3:
            self.call.invalid(f"W {list(w.shape)} and R {list(r.shape)} must have three dims")
        return self.call.transpose(w, (0, 2, 1)), self.call.transpose(r, (0, 2, 1))

    def layer(self, number: int) -> Layer:
        return replace(super().layer(number), times=_times)

    def product(self, x: Value, weight: Value, number: int) -> Value:
        scale, zero = self._parameters(8, number)
        return _product(self.call, x, shifted(self.call, weight, zero), scale)

    def weights(self, number: int) -> Values:
        """The recurrent matrix less its zero point, what the cell reads, and the scale."""
        matrix, *rest = super().weights(number)
        scale, zero = self._parameters(10, number)
        return shifted(self.call, matrix, zero), *rest, scale

    def _parameters(self, first: int, number: int) -> tuple[Value, Value]:
        """Scale and zero point of a direction's matrix: [1] or [4 hidden] each."""
        found = []
        for place in (first, first + 1):
            value = self.call.input(place)
            columns = value.dims[1] if value.rank == 2 else 1
            if value.dims not in ((len(self.directions),), (len(self.directions), columns)):
                self.call.invalid(f"input {place} {list(value.shape)} does not fit its directions")
            flat = self.call.reshape(value, (len(self.directions), columns))
            row = self.call.emit(
                "slice", flat, starts=(number, 0), limits=(number + 1, columns), strides=(1, 1)
            )
            found.append(self.call.reshape(row, (columns,)))
        return found[0], found[1]
