"""com.microsoft MatMulNBits: a product with weights of a few bits, packed, with a scale a block."""

from __future__ import annotations

import numpy as np

from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.families.linear import matrix_product
from rooftile.frontends.onnx.registry import reads
from rooftile.ir.graph import Array, Value


@reads("MatMulNBits", domain="com.microsoft")
def matmul_nbits(call: Call) -> Value:
    """x [..., K] times the transpose of weights [N, blocks, bytes] of 2, 4 or 8 bits, plus a bias.

    The weights are unpacked before the run: they must be constants.
    """
    call.ignore("accuracy_level")
    x = call.input(0)
    columns, depth = call.integer("N"), call.integer("K")
    bits, block = call.integer("bits", 4), call.integer("block_size")
    if bits not in (2, 4, 8) or block < 16 or columns < 1 or depth < 1 or x.dims[-1:] != (depth,):
        call.invalid(f"{bits} bits in blocks of {block} do not fit {columns} x {depth} weights")
    if call.optional(4) is not None:
        call.unsupported("an order of groups (g_idx)")
    blocks = -(-depth // block)
    packed, scales = call.array(1, "the weights"), call.array(2, "the scales")
    if packed.dtype != np.uint8 or packed.size != columns * blocks * (block * bits // 8):
        call.invalid(f"the weights {list(packed.shape)} do not hold {columns} x {blocks} blocks")
    if scales.size != columns * blocks:
        call.invalid(f"there are {scales.size} scales for {columns} x {blocks} blocks")
    values = _unpacked(packed.reshape(columns, blocks, -1), bits).astype(np.float32)
    values -= _zero_points(call, columns, blocks, bits)[..., None]
    weights = values * scales.reshape(columns, blocks, 1).astype(np.float32)
    weights = weights.reshape(columns, blocks * block)[:, :depth]
    result = matrix_product(call, x, call.constant(np.ascontiguousarray(weights.T), x.dtype))
    bias = call.optional(5)
    return result if bias is None else call.elementwise("add", result, bias)


def _unpacked(packed: Array, bits: int) -> Array:
    """The numbers in the bytes of the last dim, the lowest bits first."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    numbers = (packed[..., None] >> shifts) & ((1 << bits) - 1)
    return numbers.reshape(*packed.shape[:-1], -1)


def _zero_points(call: Call, columns: int, blocks: int, bits: int) -> Array:
    """A zero point for each block; the middle of the range where the model gives none."""
    if call.optional(3) is None:
        return np.full((columns, blocks), 1 << bits - 1, np.float32)
    points = call.array(3, "the zero points")
    if points.dtype == np.uint8:
        points = _unpacked(points.reshape(columns, -1), bits)[:, :blocks]
    if points.size != columns * blocks:
        call.invalid(f"there are {points.size} zero points for {columns} x {blocks} blocks")
    return points.reshape(columns, blocks).astype(np.float32)
