"""Steps of random models: reductions, products, convolutions, pools, norms, resizing, orders."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from model_maker import Maker
from model_steps import Step
from model_values import Value

REDUCTIONS = (
    *("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2"),
    *("ReduceSumSquare", "ReduceLogSumExp"),
)


def reduced(make: Maker) -> Any:
    x = make.value(lambda v: v.is_float or v.dtype.name in ("int32", "int64"))
    if x is None:
        return None
    op = make.pick(REDUCTIONS if x.is_float else ("ReduceSum", "ReduceMax", "ReduceMin"))
    axes = make.random.sample(range(x.rank), make.random.randrange(x.rank + 1))
    where = make.constant([axis - make.pick((0, x.rank)) for axis in axes]) if axes else None
    exact = op in ("ReduceMax", "ReduceMin")
    more = {"keepdims": make.pick((0, 1))}
    if not axes and make.chance(3):
        more["noop_with_empty_axes"] = 1
    return make.add(op, x, where, exact=exact, **more)


def softmax(make: Maker) -> Any:
    x = make.float_value(least=1)
    op = make.pick(("Softmax", "Softmax", "LogSoftmax", "Hardmax"))
    return x and make.add(op, x, axis=make.random.randrange(-x.rank, x.rank))


def extreme(make: Maker) -> Any:
    x = make.value(lambda v: v.rank > 0 and v.dtype.name in ("float32", "int32", "float64"))
    if x is None:
        return None
    more = {"axis": make.random.randrange(-x.rank, x.rank), "keepdims": make.pick((0, 1))}
    more["select_last_index"] = make.pick((0, 0, 1))
    return make.add(make.pick(("ArgMax", "ArgMin")), x, dtypes=["int64"], exact=True, **more)


def top(make: Maker) -> Any:
    x = make.value(lambda v: v.rank > 0 and v.dtype.name in ("float32", "int64", "float64"))
    if x is None:
        return None
    axis = make.random.randrange(x.rank)
    count = make.constant([make.random.randrange(1, x.shape[axis] + 1)])
    more = {"axis": axis, "largest": make.pick((0, 1))}
    return make.add("TopK", x, count, dtypes=[x.dtype, "int64"], exact=True, **more)


def running(make: Maker) -> Any:
    x = make.value(
        lambda v: v.rank > 0 and v.dtype.name in ("float32", "int64", "float64", "int32")
    )
    if x is None:
        return None
    axis = make.constant(make.random.randrange(-x.rank, x.rank))
    return make.add("CumSum", x, axis, exclusive=make.pick((0, 1)), reverse=make.pick((0, 1)))


def matmul(make: Maker) -> Any:
    x = make.value(lambda v: v.rank > 0 and (v.is_float or v.dtype.name in ("int32", "int64")))
    if x is None:
        return None
    inner = x.shape[-1]

    def fits(v: Value) -> bool:
        batches = zip(reversed(v.shape[:-2]), reversed(x.shape[:-2]), strict=False)
        return (
            v.dtype == x.dtype
            and v.rank > 1
            and v.shape[-2] == inner
            and all(m == n or 1 in (m, n) for m, n in batches)
        )

    batch = [make.pick((1, n)) for n in x.shape[:-2]][make.random.randrange(3) :]
    shape = (inner,) if make.chance(6) else (*batch, inner, make.pick((1, 3, 8, 16, 17)))
    own = make.weights(shape, x.dtype, 1 / math.sqrt(inner))
    return make.add("MatMul", x, own if make.chance(2) else make.value(fits) or own)


def gemm(make: Maker) -> Any:
    x = make.float_value(least=2, most=2)
    if x is None:
        return None
    flags = {"transA": make.pick((0, 1)), "transB": make.pick((0, 1))}
    rows, inner = x.shape[::-1] if flags["transA"] else x.shape
    columns = make.pick((1, 5, 8, 16))
    shape = (columns, inner) if flags["transB"] else (inner, columns)
    bias = make.pick(((), (columns,), (rows, 1), (1, columns), (rows, columns)))
    more = {**flags, "alpha": make.pick((1.0, 0.5)), "beta": make.pick((1.0, 0.25))}
    weights = make.weights(shape, x.dtype, 1 / math.sqrt(inner))
    return make.add("Gemm", x, weights, make.weights(bias, x.dtype), **more)


def einsum(make: Maker) -> Any:
    """The dims of x, some of them shared by a second operand, some kept."""
    x = make.float_value(least=1, most=4)
    if x is None:
        return None
    letters = "abcd"[: x.rank]
    extents = dict(zip(letters, x.shape, strict=True)) | {"z": make.pick((1, 3, 8))}
    others = make.random.sample(letters + "z", make.random.randrange(1, x.rank + 2))
    kept = [c for c in dict.fromkeys([*letters, *others]) if not make.chance(2)]
    make.random.shuffle(kept)
    other = make.weights([extents[c] for c in others], x.dtype, 0.5)
    equation = f"{letters},{''.join(others)}->{''.join(kept)}"
    return make.add("Einsum", x, other, equation=equation)


def _windows(make: Maker, x: Value, pool: bool) -> dict[str, Any]:
    """Attributes of windows that fit the image."""
    space = x.shape[2:]
    kernel = [min(make.pick((1, 2, 3, 3)), n) for n in space]
    more: dict[str, Any] = {
        "kernel_shape": kernel,
        "strides": [make.pick((1, 1, 2, 3)) for _ in space],
    }
    if make.chance(3):
        more["auto_pad"] = make.pick(("SAME_UPPER", "SAME_LOWER", "VALID"))
        return more
    more["pads"] = [make.random.randrange(k if pool else 3) for k in (*kernel, *kernel)]
    if not pool and make.chance(3):
        more["dilations"] = [
            make.pick((1, 2)) if n >= 2 * k else 1 for n, k in zip(space, kernel, strict=True)
        ]
    return more


def image(make: Maker) -> Value | None:
    """A float value with a batch, channels and space."""
    return make.float_value(least=3, most=5)


def conv(make: Maker) -> Any:
    x = image(make)
    if x is None:
        return None
    more = _windows(make, x, pool=False)
    channels = x.shape[1]
    groups = make.pick([g for g in (1, 1, 2, channels) if channels % g == 0])
    features = groups * make.pick((1, 2, 4, 8))
    count = channels // groups * math.prod(more["kernel_shape"])
    w = make.weights((features, channels // groups, *more["kernel_shape"]), x.dtype, count**-0.5)
    bias = make.weights((features,), x.dtype) if make.chance(2) else None
    return make.add("Conv", x, w, bias, group=groups, **more)


def conv_transpose(make: Maker) -> Any:
    x = image(make)
    if x is None or x.rank > 4:
        return None
    more = _windows(make, x, pool=True)
    more.pop("auto_pad", None)
    channels = x.shape[1]
    groups = make.pick([g for g in (1, 2, channels) if channels % g == 0])
    shape = (channels, make.pick((1, 2, 4)), *more["kernel_shape"])
    w = make.weights(shape, x.dtype, 0.5)
    return make.add("ConvTranspose", x, w, group=groups, **more)


def pool(make: Maker) -> Any:
    x = image(make)
    if x is None:
        return None
    op = make.pick(
        ("MaxPool", "AveragePool", "MaxPool", "GlobalAveragePool", "GlobalMaxPool", "LpPool")
    )
    if op.startswith("Global"):
        return make.add(op, x, exact=op == "GlobalMaxPool")
    more = _windows(make, x, pool=True)
    if "pads" in more and op != "LpPool" and make.opset >= 22:  # before, sizes are unclear
        more["ceil_mode"] = make.pick((0, 0, 1))
    if op == "AveragePool":
        more["count_include_pad"] = make.pick((0, 1))
    return make.add(op, x, exact=op == "MaxPool", **more)


def normalized(make: Maker) -> Any:
    x = make.float_value(least=2)
    if x is None:
        return None
    op = make.pick(("Layer", "Layer", "Batch", "Instance", "Group", "Lp", "MeanVariance", "LRN"))
    channels = x.shape[1]
    scale, bias = make.weights((channels,), x.dtype), make.weights((channels,), x.dtype)
    if op == "Layer":
        axis = make.random.randrange(-x.rank, 0)
        parts = [make.weights(x.shape[axis:], x.dtype) for _ in range(2)]
        return make.add("LayerNormalization", x, *parts, axis=axis, epsilon=1e-2)
    if op == "Batch":
        spread = make.constant(make.generator.uniform(0.5, 2, channels), x.dtype)
        middle = make.weights((channels,), x.dtype)
        return make.add("BatchNormalization", x, scale, bias, middle, spread)
    if op == "Lp":
        axis = make.random.randrange(x.rank)
        return make.add("LpNormalization", x, axis=axis, p=make.pick((1, 2)))
    if x.rank < 3:
        return None
    if op == "Instance":
        return make.add("InstanceNormalization", x, scale, bias, epsilon=1e-2)
    if op == "Group" and make.opset >= 21:
        groups = make.pick([g for g in (1, 2, channels) if channels % g == 0])
        return make.add("GroupNormalization", x, scale, bias, num_groups=groups, epsilon=1e-2)
    if x.rank != 4:
        return None
    if op == "LRN" or x.dtype.name != "float32":
        return make.add("LRN", x, size=make.pick((1, 3)), alpha=0.1)
    return make.add("MeanVarianceNormalization", x, axes=[0, 2, 3])


def resize(make: Maker) -> Any:
    """Whole factors and halves, whose coordinates float32 holds; the batch and channels stay."""
    x = image(make)
    if x is None or x.rank > 4:
        return None
    mode = (
        make.pick(("nearest", "linear", "cubic"))
        if x.rank == 4
        else make.pick(("nearest", "linear"))
    )
    scales = [
        1.0,
        1.0,
        *(make.pick((1.0, 2.0, 3.0, 0.5) if n % 2 == 0 else (1.0, 2.0)) for n in x.shape[2:]),
    ]
    more: dict[str, Any] = {"mode": mode}
    places = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    if mode == "nearest":
        more["nearest_mode"] = make.pick(
            ("floor", "round_prefer_floor", "ceil", "round_prefer_ceil")
        )
        places = ("half_pixel", "asymmetric")
    more["coordinate_transformation_mode"] = make.pick(places)
    if make.chance(2):
        return make.add(
            "Resize", x, None, make.constant(scales, "float32"), exact=mode == "nearest", **more
        )
    sizes = [int(n * s) for n, s in zip(x.shape, scales, strict=True)]
    return make.add("Resize", x, None, None, make.constant(sizes), exact=mode == "nearest", **more)


def recurrent(make: Maker) -> Any:
    """A layer over the first dim; states come out as well."""
    x = make.float_value(least=3, most=3)
    if x is None or x.dtype.name != "float32":
        return None
    op, gates = make.pick((("LSTM", 4), ("GRU", 3), ("RNN", 1)))
    hidden, features = make.pick((1, 3, 8)), x.shape[2]
    w = make.weights((1, gates * hidden, features), x.dtype, 0.5)
    r = make.weights((1, gates * hidden, hidden), x.dtype, 0.5)
    bias = make.weights((1, 2 * gates * hidden), x.dtype) if make.chance(2) else None
    return make.add(op, x, w, r, bias, dtypes=[x.dtype] * 2, hidden_size=hidden)


def quantized(make: Maker) -> Any:
    """Bytes made numbers, their products, or numbers made bytes."""
    x = make.value(lambda v: v.dtype.name in ("uint8", "int8") and v.rank > 1)
    if x is not None and make.chance(2):
        other = make.weights((x.shape[-1], make.pick((1, 8))), make.pick(("uint8", "int8")))
        return make.add("MatMulInteger", x, other, dtypes=["int32"])
    scale = make.constant(0.25, "float32")
    if x is not None and make.chance(2):
        zero = make.constant(1, x.dtype)
        return make.add("DequantizeLinear", x, scale, zero, dtypes=["float32"])
    y = make.value(lambda v: v.dtype.name == "float32")
    kind = np.dtype(make.pick(("uint8", "int8")))
    return y and make.add("QuantizeLinear", y, scale, make.constant(3, kind), dtypes=[kind])


LAYERS: tuple[Step, ...] = (
    *(reduced, reduced, softmax, extreme, top, running, matmul, matmul, gemm, einsum, einsum),
    *(conv, conv, conv, conv_transpose, pool, pool, normalized, normalized, resize, recurrent),
    *(quantized,),
)
