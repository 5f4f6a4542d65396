"""Readers that sample between elements, against onnxruntime: grids, regions, moved taps."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from onnx import helper, reference
from onnx_models import Const, agrees, floats, ints, model_of, one_node, optimized, same

from rooftile.core.errors import InvalidModel
from rooftile.frontends.onnx import read
from rooftile.frontends.onnx.families.interpolate import coordinates
from rooftile.ops.evaluate import evaluate

IMAGE = floats(2, 3, 5, 7)
GRID = floats(2, 4, 6, 2, seed=1)
"""Normal numbers: a third of the places lies outside -1..1."""


@pytest.mark.parametrize("mode", ["linear", "cubic", "nearest"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("corners", [0, 1])
def test_grid_sample(mode: str, padding: str, corners: int) -> None:
    agrees(
        *one_node(
            "GridSample",
            IMAGE,
            GRID,
            opset=20,
            mode=mode,
            padding_mode=padding,
            align_corners=corners,
        ),
        rtol=1e-4,
        atol=1e-5,
    )


def test_grid_sample_of_a_volume_and_of_one_element() -> None:
    volume, grid = floats(1, 2, 3, 4, 5), floats(1, 2, 3, 2, 3, seed=1)
    agrees(*one_node("GridSample", volume, grid, opset=20), rtol=1e-4, atol=1e-5)
    far = np.array([3.5, -2.25], np.float32).reshape(1, 1, 1, 2)
    more = {"padding_mode": "reflection", "align_corners": 1}
    model, feeds = one_node("GridSample", floats(1, 1, 1, 1), far, opset=20, **more)
    found = evaluate(read(model), feeds)
    assert found["out0"] == pytest.approx(floats(1, 1, 1, 1))


def test_what_a_grid_must_be() -> None:
    model, _ = one_node("GridSample", IMAGE, floats(2, 4, 6, 3), opset=20)
    with pytest.raises(InvalidModel, match=r"grid \[2, 4, 6, 3\] does not fit the input"):
        read(model)
    model, _ = one_node("GridSample", IMAGE, GRID, opset=20, mode="spline")
    with pytest.raises(InvalidModel, match="mode 'spline' must be linear, cubic or nearest"):
        read(model)


REGIONS = np.array([[1, 1, 5, 4], [-2, 0.6, 3.1, 9.2], [3, 2, 2.5, 2.1]], np.float32)
BATCH = np.array([0, 1, 0], np.int64)


@pytest.mark.parametrize("half", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 2])
def test_roi_align(half: str, mode: str, ratio: int) -> None:
    more = {"coordinate_transformation_mode": half, "mode": mode, "sampling_ratio": ratio}
    more |= {"output_height": 3, "output_width": 2, "spatial_scale": 0.8}
    regions = REGIONS if ratio else Const(REGIONS)
    agrees(*one_node("RoiAlign", IMAGE, regions, BATCH, **more), rtol=1e-4, atol=1e-5)


def test_roi_align_before_half_pixels() -> None:
    more = {"output_height": 2, "output_width": 2, "sampling_ratio": 2}
    same("RoiAlign", IMAGE, REGIONS, BATCH, opset=15, **more)
    model, _ = one_node("RoiAlign", IMAGE, REGIONS, BATCH[:2], opset=15, **more)
    with pytest.raises(InvalidModel, match=r"batch_indices \[2\] must have one number a region"):
        read(model)


def test_max_roi_pool() -> None:
    regions = np.array([[0, 1, 1, 5, 4], [1, 0, 0, 9, 9], [1, 3, 2, 3, 2]], np.float32)
    same("MaxRoiPool", IMAGE, regions, pooled_shape=[2, 3], spatial_scale=0.75)
    same("MaxRoiPool", IMAGE, regions, pooled_shape=[4, 9])
    model, _ = one_node("MaxRoiPool", IMAGE, REGIONS, pooled_shape=[2, 3])
    with pytest.raises(InvalidModel, match=r"regions \[3, 4\] or pooled_shape \[2, 3\]"):
        read(model)


@pytest.mark.parametrize(
    ("w", "attributes"),
    [
        ((4, 4, 3, 3), {"pads": [1, 1, 1, 1]}),
        ((6, 2, 2, 2), {"group": 2, "offset_group": 2, "strides": [2, 1]}),
        ((2, 4, 2, 1), {"dilations": [2, 1]}),
    ],
)
def test_deform_conv(w: tuple[int, ...], attributes: dict) -> None:
    x, parts, taps = floats(2, 4, 6, 5), attributes.get("offset_group", 1), w[2] * w[3]
    conv, feeds = one_node(
        "Conv", x, floats(*w), **{k: v for k, v in attributes.items() if k != "offset_group"}
    )
    places = evaluate(read(conv), feeds)["out0"].shape[2:]
    offset = floats(2, parts * taps * 2, *places, seed=2)
    mask = floats(2, parts * taps, *places, seed=3)
    model, feeds = one_node(
        "DeformConv", x, floats(*w), offset, floats(w[0]), mask, opset=19, **attributes
    )
    wanted = reference.ReferenceEvaluator(model).run(None, feeds)[0]
    np.testing.assert_allclose(evaluate(read(model), feeds)["out0"], wanted, 1e-3, 1e-4)


def test_an_unmoved_deform_conv_is_a_conv() -> None:
    x, w = floats(1, 4, 6, 5), floats(4, 2, 3, 3)
    more = {"group": 2, "pads": [1, 0, 1, 0]}
    conv, feeds = one_node("Conv", x, w, **more)
    wanted = evaluate(read(conv), feeds)["out0"]
    offset = np.zeros((1, 18, *wanted.shape[2:]), np.float32)
    model, feeds = one_node("DeformConv", x, w, offset, opset=19, **more)
    np.testing.assert_allclose(evaluate(read(model), feeds)["out0"], wanted, 1e-5, 1e-5)
    model, _ = one_node("DeformConv", x, w, offset[:, :16], opset=19, **more)
    with pytest.raises(InvalidModel, match=r"offset .* does not fit 9 taps"):
        read(model)


@pytest.mark.parametrize(
    ("image", "block", "attributes"),
    [
        ([5, 6], [2, 3], {}),
        ([6, 6], [2, 2], {"strides": [2, 2]}),
        ([5, 5], [3, 2], {"pads": [1, 0, 2, 1], "dilations": [1, 2], "strides": [2, 1]}),
        ([3, 4, 4], [2, 1, 2], {}),
    ],
)
def test_col2im(image: list[int], block: list[int], attributes: dict) -> None:
    rank = len(image)
    strides, dilations = (attributes.get(name, [1] * rank) for name in ("strides", "dilations"))
    pads, blocks = attributes.get("pads", [0] * 2 * rank), 1
    for dim in range(rank):
        reach = dilations[dim] * (block[dim] - 1) + 1
        blocks *= (image[dim] + pads[dim] + pads[rank + dim] - reach) // strides[dim] + 1
    x = floats(2, 3 * int(np.prod(block)), blocks)
    same("Col2Im", x, ints(*image), ints(*block), opset=18, **attributes)


def test_blocks_that_do_not_fit_an_image() -> None:
    model, _ = one_node("Col2Im", floats(1, 4, 9), ints(5, 5), ints(2, 2), opset=18)
    with pytest.raises(InvalidModel, match=r"\[1, 4, 9\] is not \[4, 4\] blocks of \[2, 2\]"):
        read(model)


MODES = ["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"]
ROUNDINGS = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]


@pytest.mark.parametrize("coordinates", MODES)
@pytest.mark.parametrize("sizes", [(10, 14), (9, 4), (3, 5), (1, 1), (5, 7)])
def test_resize_to_sizes(coordinates: str, sizes: tuple[int, int]) -> None:
    where = {"coordinate_transformation_mode": coordinates}
    given = (None, None, ints(2, 3, *sizes))
    for mode in ("linear", "cubic"):
        one = one_node("Resize", IMAGE, *given, opset=19, mode=mode, **where)
        agrees(*one, rtol=1e-4, atol=1e-5)
    for rounding in ROUNDINGS:
        same("Resize", IMAGE, *given, opset=19, mode="nearest", nearest_mode=rounding, **where)


@pytest.mark.parametrize(
    ("scales", "opset"), list(itertools.product([(2, 2), (1.5, 3), (0.7, 0.5)], [10, 11]))
)
def test_resize_by_scales(scales: tuple[float, float], opset: int) -> None:
    given = Const(np.array([1, 1, *scales], np.float32))
    inputs = (given,) if opset == 10 else (Const(np.zeros(0, np.float32)), given)
    for mode in ("nearest", "linear"):
        agrees(*one_node("Resize", IMAGE, *inputs, opset=opset, mode=mode), rtol=1e-4, atol=1e-5)


def test_resize_of_other_types_and_ranks() -> None:
    line = np.arange(12, dtype=np.uint8).reshape(1, 2, 6)
    same("Resize", line, None, Const(np.array([1, 1, 2.5], np.float32)), opset=13)
    same("Upsample", IMAGE, Const(np.array([1, 1, 2, 3], np.float32)), opset=9, mode="linear")
    same("Upsample", IMAGE, opset=8, mode="nearest", scales=[1.0, 1.0, 2.0, 3.0])


def test_whole_factors_gather_nothing() -> None:
    scales = Const(np.array([1, 1, 2, 2], np.float32))
    where = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    graph = same("Resize", IMAGE, None, scales, opset=13, mode="nearest", **where)
    assert {node.op for node in graph.nodes} <= {"reshape", "broadcast"}


def test_a_resized_layer_moves_no_data_between_convolutions() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("Resize", ["a", "", "s"], ["b"], mode="linear"),
        helper.make_node("Conv", ["b", "w"], ["y"]),
    ]
    weights = {"w": floats(8, 8, 1, 1), "s": np.array([1, 1, 2, 2], np.float32)}
    x = {"x": floats(1, 8, 6, 6)}
    graph = optimized(agrees(model_of(nodes, x, ["y"], weights), x, 1e-3, 1e-4))
    assert [node.op for node in graph.nodes].count("transpose") == 2  # input and output


@pytest.mark.parametrize(
    ("inputs", "attributes", "message"),
    [
        ((None, None, None), {}, "either scales or sizes must be given"),
        ((None, None, ints(2, 3, 4)), {}, r"sizes \[2, 3, 4\] must be 4 numbers"),
        ((None, Const(np.array([1, 1, 0, 1], np.float32))), {}, "must be 4 positive numbers"),
        ((None, None, ints(2, 3, 4, 4)), {"mode": "area"}, "mode 'area' must be nearest"),
        ((None, None, ints(4, 4)), {"axes": [2, -2]}, "name an axis twice"),
        (
            (None, None, ints(2, 3, 4, 4)),
            {"coordinate_transformation_mode": "x"},
            "coordinate_transformation_mode 'x' is unknown",
        ),
        (
            (None, None, ints(2, 3, 4, 4)),
            {"keep_aspect_ratio_policy": "x"},
            "keep_aspect_ratio_policy 'x' must be stretch",
        ),
        ((None, None, ints(2, 3, 4, 4)), {"nearest_mode": "x"}, "nearest_mode 'x' is unknown"),
        (
            (ints(0, 1), None, ints(2, 3, 4, 4)),
            {"coordinate_transformation_mode": "tf_crop_and_resize"},
            "roi must be a list of numbers",
        ),
    ],
)
def test_resizes_that_are_refused(inputs: tuple, attributes: dict, message: str) -> None:
    model, _ = one_node("Resize", IMAGE, *inputs, opset=19, **attributes)
    with pytest.raises(InvalidModel, match=message):
        read(model)


@pytest.mark.parametrize(
    "attributes",
    [
        {"mode": "linear", "antialias": 1},
        {"mode": "cubic", "antialias": 1, "exclude_outside": 1},
        {"mode": "cubic", "cubic_coeff_a": -0.5, "exclude_outside": 1},
        {"mode": "linear", "coordinate_transformation_mode": "half_pixel_symmetric"},
        {"mode": "linear", "keep_aspect_ratio_policy": "not_larger"},
        {"mode": "nearest", "keep_aspect_ratio_policy": "not_smaller"},
    ],
)
def test_resize_as_the_reference_does(attributes: dict) -> None:
    sizes = ints(3, 4)
    model, feeds = one_node("Resize", IMAGE, None, None, sizes, opset=19, axes=[2, 3], **attributes)
    wanted = reference.ReferenceEvaluator(model).run(None, feeds)[0]
    np.testing.assert_allclose(evaluate(read(model), feeds)["out0"], wanted, 1e-4, 1e-5)


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_a_part_of_an_image_with_its_surroundings(mode: str) -> None:
    roi = Const(np.array([0.1, -0.2, 0.9, 1.1], np.float32))
    more = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 7.0}
    inputs = (IMAGE, roi, None, ints(4, 6))
    model, feeds = one_node("Resize", *inputs, opset=19, axes=[2, 3], mode=mode, **more)
    wanted = reference.ReferenceEvaluator(model).run(None, feeds)[0]
    found = evaluate(read(model), feeds)["out0"]
    np.testing.assert_allclose(found, wanted, 1e-4, 1e-5)
    assert (found == 7).any()


def test_other_places_of_the_nearest_element() -> None:
    indices = coordinates("tf_half_pixel_for_nn", 4, 2, 0.5, (0, 1), np.dtype(np.float32))
    np.testing.assert_array_equal(indices, [1, 3])
    assert coordinates("tf_crop_and_resize", 5, 1, 0.2, (0.5, 1), np.dtype(np.float64)) == [3]
