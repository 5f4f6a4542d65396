"""Regions as tile programs: their texts, and what they compute in the interpreter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from regions import lowered, region_of
from sketch import Sketch

from rooftile.core.errors import NotLowered
from rooftile.ir.graph import Graph, Value
from rooftile.ir.tile import Load, Reduce, expressions, subtiles
from rooftile.ir.tile.text import to_text
from rooftile.lower import View, lower


def scaled(s: Sketch, x: Value, *dims: int) -> Value:
    """The mean over dims."""
    count = int(np.prod([x.dims[dim] for dim in dims]))
    return s("mul", s("reduce", x, op="sum", dims=dims), 1 / count)


def matmul_bias_gelu(s: Sketch) -> Value:
    x = s.input(6, 8)
    product = s("add", s.dot(x, s.constant(np.arange(80).reshape(8, 10) / 80)), [[0.5] * 10])
    inner = s("erf", s("mul", product, 0.7071))
    return s("mul", s("mul", product, 0.5), s("add", inner, 1.0))


def softmax(s: Sketch, x: Value, dim: int) -> Value:
    raised = s("exp", s("sub", x, s("reduce", x, op="max", dims=(dim,))))
    return s("div", raised, s("reduce", raised, op="sum", dims=(dim,)))


def softmax_last(s: Sketch) -> Value:
    return softmax(s, s.input(4, 3, 8), 2)


def softmax_middle(s: Sketch) -> Value:
    return softmax(s, s.input(4, 3, 8), 1)


def layer_norm(s: Sketch) -> Value:
    """The mean first, then the variance of what is centred."""
    x = s.input(5, 12)
    centred = s("sub", x, scaled(s, x, 1))
    variance = scaled(s, s("mul", centred, centred), 1)
    return s("div", centred, s("sqrt", s("add", variance, 1e-5)))


def layer_norm_by_moments(s: Sketch) -> Value:
    """E[x^2] - E[x]^2."""
    x = s.input(5, 12)
    mean = scaled(s, x, 1)
    variance = s("sub", scaled(s, s("mul", x, x), 1), s("mul", mean, mean))
    return s("mul", s("sub", x, mean), s("div", 1.0, s("sqrt", s("add", variance, 0.1))))


def layer_norm_of_a_sum(s: Sketch) -> Value:
    """The residual is computed once and the axis is shared by both reductions."""
    x, y = s.input(5, 12), s.input(5, 12)
    total = s("add", x, y)
    centred = s("sub", total, scaled(s, total, 1))
    return s("div", centred, s("sqrt", s("add", scaled(s, s("mul", centred, centred), 1), 0.1)))


def instance_norm(s: Sketch) -> Value:
    """Two reduced dims that every access runs through together: one axis."""
    x = s.input(2, 3, 4, 5)
    return s("sub", x, scaled(s, x, 2, 3))


def split_heads(s: Sketch, x: Value, heads: int) -> Value:
    rows, width = x.dims
    parted = s("reshape", x, shape=(rows, heads, width // heads))
    return s("transpose", parted, perm=(1, 0, 2))


def attention(s: Sketch) -> Value:
    """Heads split by reshapes, merged by a reshape."""
    q, k, v = (split_heads(s, s.input(5, 8), 2) for _ in range(3))
    batch = {"lhs_batch": (0,), "rhs_batch": (0,)}
    scores = s("dot", q, k, lhs_contract=(2,), rhs_contract=(2,), **batch)
    mixed = s("dot", softmax(s, scores, 2), v, lhs_contract=(2,), rhs_contract=(1,), **batch)
    return s("reshape", s("transpose", mixed, perm=(1, 0, 2)), shape=(5, 8))


def attention_from_one_product(s: Sketch) -> Value:
    """Q, K and V are slices of one tensor."""
    x = s.input(5, 24)
    cut = {"strides": (1, 1)}
    parts = [s("slice", x, starts=(0, 8 * i), limits=(5, 8 * i + 8), **cut) for i in range(2)]
    q, k = (split_heads(s, part, 2) for part in parts)
    batch = {"lhs_batch": (0,), "rhs_batch": (0,)}
    return softmax(s, s("dot", q, k, lhs_contract=(2,), rhs_contract=(2,), **batch), 2)


def conv_bias_relu(s: Sketch) -> Value:
    x = s.input(1, 6, 5, 4)
    y = s.conv(x, 3, 3, 8, pads_low=(1, 1), pads_high=(1, 1))
    return s("max", s("add", y, 0.25), 0.0)


def depthwise(s: Sketch) -> Value:
    x = s.input(1, 6, 5, 4)
    return s.conv(x, 3, 3, 4, groups=4, strides=(2, 1), pads_low=(1, 1), pads_high=(1, 1))


def grouped_conv(s: Sketch) -> Value:
    """The feature's axis is split into group and feature."""
    return s.conv(s.input(1, 6, 4), 2, 6, groups=2)


def max_pool(s: Sketch) -> Value:
    x = s.input(1, 7, 7, 3)
    ones = (1, 1)
    return s(
        "reduce_window",
        x,
        op="max",
        window=(1, 3, 3, 1),
        strides=(1, 2, 2, 1),
        dilations=(1, 1, 1, 1),
        pads_low=(0, *ones, 0),
        pads_high=(0, *ones, 0),
    )


def pad_of_a_transposed(s: Sketch) -> Value:
    x = s("transpose", s.input(3, 4), perm=(1, 0))
    return s("exp", s("pad", x, low=(1, 0), high=(0, 2), value=0.5))


def strided_slice(s: Sketch) -> Value:
    x = s.input(6, 9)
    return s("neg", s("slice", x, starts=(5, 1), limits=(-1, 9), strides=(-2, 3)))


def gathered_rows(s: Sketch) -> Value:
    table = s.input(7, 4)
    return s("mul", s("gather", table, s.constant([[1, -1], [3, 0]], "i64"), axis=0), 2.0)


def reshape_in_flat_order(s: Sketch) -> Value:
    return s("reshape", s.input(4, 6), shape=(3, 8))


def scalar(s: Sketch) -> Value:
    return s("exp", s.input())


REGIONS: tuple[Callable[[Sketch], Value], ...] = (
    matmul_bias_gelu,
    softmax_last,
    softmax_middle,
    layer_norm,
    layer_norm_by_moments,
    layer_norm_of_a_sum,
    instance_norm,
    attention,
    attention_from_one_product,
    conv_bias_relu,
    depthwise,
    grouped_conv,
    max_pool,
    pad_of_a_transposed,
    strided_slice,
    gathered_rows,
    reshape_in_flat_order,
    scalar,
)


@pytest.mark.parametrize("make", REGIONS, ids=lambda make: make.__name__)
def test_right_and_as_before(
    make: Callable[[Sketch], Value], golden: Callable[[str, str], None]
) -> None:
    s = Sketch()
    found = lowered(s.graph(make(s)))
    golden(f"lower/{make.__name__}.txt", to_text(found.kernel))


@pytest.mark.parametrize("make", [softmax_last, layer_norm, layer_norm_by_moments, instance_norm])
def test_a_row_is_reduced_along_the_axis_it_is_used_on(make: Callable[[Sketch], Value]) -> None:
    s = Sketch()
    kernel = lowered(s.graph(make(s))).kernel
    over = {t.axis for e in expressions(kernel.body) for t in subtiles(e) if isinstance(t, Reduce)}
    assert len(over) == 1
    assert len(kernel.axes) == len(kernel.bufs[-1].shape)


def test_several_outputs_share_what_they_are_made_of() -> None:
    s = Sketch()
    x = s.input(4, 6)
    y = s("exp", x)
    kernel = lowered(s.graph(y, s("mul", y, 2.0))).kernel
    assert sum(isinstance(t, Load) for e in expressions(kernel.body) for t in subtiles(e)) == 1
    assert kernel.outputs == ("y0", "y1")


def test_uniform_constants_become_numbers() -> None:
    s = Sketch()
    x = s.input(4, 6)
    kernel = lowered(s.graph(s("add", x, np.full((4, 6), 2.5)))).kernel
    assert [buf.name for buf in kernel.bufs] == ["x0", "y0"]
    assert "2.5" in to_text(kernel)


def test_negative_zero_is_not_zero() -> None:
    s = Sketch()
    kernel = lowered(s.graph(s("add", s.input(2), np.array([0.0, -0.0])))).kernel
    assert [buf.name for buf in kernel.bufs] == ["x0", "x1", "y0"]


def part_of(graph: Graph, name: str, start: int, rows: int) -> dict[str, View]:
    """A view that puts a value of two dims into a taller buffer."""
    shape = (rows, graph.values[name].dims[1])
    return {name: View("whole", shape, (start, 0))}


def test_an_output_in_a_part_of_a_buffer() -> None:
    s = Sketch()
    graph = s.graph(s("exp", s.input(2, 3)))
    found = lower(region_of(graph), views=part_of(graph, "y0", 4, 10))
    assert found.arguments == ("x0", "whole")
    assert found.kernel.bufs[1].shape == (10, 3)
    assert "[m+4, n]" in to_text(found.kernel)


def test_padding_of_a_part_does_not_read_its_neighbours() -> None:
    s = Sketch()
    x = s.input(2, 3)
    graph = s.graph(s("pad", x, low=(1, 0), high=(1, 0), value=7.0))
    found = lower(region_of(graph), views=part_of(graph, "x0", 4, 10))
    from rooftile.ir.tile.interpret import run

    whole = np.arange(30.0).reshape(10, 3)
    wanted = np.pad(whole[4:6], ((1, 1), (0, 0)), constant_values=7.0)
    assert run(found.kernel, {"x0": whole})["y0"].tolist() == wanted.tolist()


def test_what_stands_between_two_stores_of_one_buffer() -> None:
    s = Sketch()
    x = s.input(2, 3)
    graph = s.graph(s("exp", x))
    views = {name: View("whole", (4, 3), (2 * at, 0)) for at, name in enumerate(("x0", "y0"))}
    found = lower(region_of(graph), views=views)
    assert found.arguments == ("whole",)


def refusal(graph: Graph, views: dict[str, View] | None = None) -> str:
    with pytest.raises(NotLowered) as caught:
        lower(region_of(graph), graph.constants, views)
    return str(caught.value)


def test_reshapes_that_do_not_split() -> None:
    s = Sketch()
    x = s("exp", s.input(4, 6))
    graph = s.graph(s("exp", s("reshape", x, shape=(3, 8))))
    assert refusal(graph) == "r: axis m of 3 does not split"


def test_a_reversed_axis_meets_a_reshape() -> None:
    s = Sketch()
    flat = s("reshape", s.input(2, 3), shape=(6,))
    graph = s.graph(s("slice", flat, starts=(5,), limits=(-1,), strides=(-1,)))
    assert refusal(graph) == "r: a reversed axis meets a reshape"


def test_a_slice_that_crosses_a_reshape() -> None:
    s = Sketch()
    flat = s("reshape", s.input(2, 6), shape=(12,))
    graph = s.graph(s("slice", flat, starts=(4,), limits=(12,), strides=(1,)))
    assert refusal(graph) == "r: axis i of 8 does not split"
    s = Sketch()
    flat = s("reshape", s.input(2, 6), shape=(12,))
    graph = s.graph(s("slice", flat, starts=(4,), limits=(8,), strides=(1,)))
    assert refusal(graph) == "r: index i+4 leaves a reshaped dim of 6"


def test_padding_of_what_is_computed() -> None:
    s = Sketch()
    graph = s.graph(s("pad", s("exp", s.input(3)), low=(1,), high=(0,), value=0.0))
    assert refusal(graph) == "%x0: index [i-1] leaves shape [3]"
    s = Sketch()
    graph = s.graph(s("pad", s("exp", s.input(1)), low=(1,), high=(0,), value=0.0))
    assert refusal(graph) == "%exp_0: padding of a computed value; it is stored first"


def test_padding_of_a_slice_reads_beside_it() -> None:
    s = Sketch()
    x = s("slice", s.input(6), starts=(1,), limits=(4,), strides=(1,))
    graph = s.graph(s("pad", x, low=(1,), high=(1,), value=0.0))
    assert refusal(graph) == "%slice_0: padding of a computed value; it is stored first"


def test_gathering_from_what_is_computed() -> None:
    s = Sketch()
    x = s("exp", s.input(3, 4))
    graph = s.graph(s("gather", x, s.input(2, dtype="i64"), axis=0))
    assert refusal(graph) == "%exp_0: only what lies in memory can be gathered from"


def test_gathering_from_a_part() -> None:
    s = Sketch()
    graph = s.graph(s("gather", s.input(3, 4), s.input(2, dtype="i64"), axis=0))
    views = part_of(graph, "x0", 0, 9)
    assert refusal(graph, views) == "%x0: gathered from a part of a larger buffer"


def test_outputs_of_two_shapes() -> None:
    s = Sketch()
    x = s.input(3, 4)
    graph = s.graph(s("exp", x), s("reduce", x, op="sum", dims=(1,)))
    assert refusal(graph) == "r: its outputs differ in shape"


def test_an_op_without_a_body() -> None:
    s = Sketch()
    x = s.input(3)
    graph = s.graph(s("concat", x, x, axis=0))
    assert refusal(graph) == "%y0: concat has no tile body"
