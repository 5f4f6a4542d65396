"""Linear models, support vectors and preparation of features of ai.onnx.ml, as compositions."""

from __future__ import annotations

import numpy as np

from rooftile.core.dtype import kind
from rooftile.frontends.onnx.call import Call
from rooftile.frontends.onnx.families.position import position_of
from rooftile.frontends.onnx.families.scores import label_of, labels, transformed
from rooftile.frontends.onnx.families.trees import ML, rows_of
from rooftile.frontends.onnx.registry import reads
from rooftile.ir.graph import Array, Value

MAX_KEYS = 4096
"""Tables of more keys are not looked up by comparing with each."""


@reads("Binarizer", domain=ML)
def binarizer(call: Call) -> Value:
    """1 where x is above a threshold, else 0."""
    x = call.input(0)
    return call.cast(call.elementwise("lt", call.number("threshold", 0.0), x), x.dtype)


@reads("Scaler", domain=ML)
def scaler(call: Call) -> Value:
    """(x - offset) * scale along the last dim, f32."""
    x = call.cast(call.input(0), "f32")
    for name, op in (("offset", "sub"), ("scale", "mul")):
        values = np.array(call.floats(name, ()), np.float32)
        if values.size not in (0, 1, x.dims[-1] if x.rank else 1):
            call.invalid(f"{name} holds {values.size} values for {list(x.shape)}")
        if values.size:
            x = call.elementwise(op, x, call.constant(values, "f32"))
    return x


@reads("Normalizer", domain=ML)
def normalizer(call: Call) -> Value:
    """Rows divided by their maximum or norm; rows of norm 0 stay."""
    x, norm = call.cast(call.input(0), "f32"), call.text("norm", "MAX")
    dims = (x.rank - 1,)
    if norm == "MAX":
        size = call.emit("reduce", x, op="max", dims=dims)
    elif norm == "L1":
        size = call.emit("reduce", call.emit("abs", x), op="sum", dims=dims)
    elif norm == "L2":
        size = call.emit("sqrt", call.emit("reduce", call.emit("mul", x, x), op="sum", dims=dims))
    else:
        call.invalid(f"norm must be MAX, L1 or L2, not {norm!r}")
    nothing = call.elementwise("eq", size, 0)
    return call.elementwise("div", x, call.elementwise("where", nothing, 1, size))


@reads("LinearRegressor", domain=ML)
def linear_regressor(call: Call) -> Value:
    """Coefficients times features plus intercepts, f32."""
    x = call.cast(rows_of(call), "f32")
    scores = _products(call, x, call.integer("targets", 1))
    return transformed(call, scores, call.text("post_transform", "NONE"))


@reads("LinearClassifier", domain=ML)
def linear_classifier(call: Call) -> tuple[Value, ...]:
    """The label of the largest score, and the scores; one score stands for two classes."""
    call.ignore("multi_class")
    names = labels(call, "classlabels_ints")
    x, transform = call.cast(rows_of(call), "f32"), call.text("post_transform", "NONE")
    count = len(call.floats("intercepts", ())) or names.dims[0]
    scores = _products(call, x, count)
    if count > 1:
        number = call.reshape(position_of(call, scores, 1, "max"), (x.dims[0],))
        return label_of(call, names, number), transformed(call, scores, transform)
    positive = call.cast(call.elementwise("lt", 0, scores), "i64")
    label = label_of(call, names, call.reshape(positive, (x.dims[0],)))
    score = call.emit("logistic", scores) if transform == "LOGISTIC" else scores
    pair = call.emit("concat", call.elementwise("sub", 1, score), score, axis=1)
    return label, pair if transform == "LOGISTIC" else transformed(call, pair, transform)


def _products(call: Call, x: Value, count: int) -> Value:
    """[batch, features] x coefficients [count, features] + intercepts."""
    weights = np.array(call.floats("coefficients", ()), np.float32)
    if weights.size != count * x.dims[1]:
        call.invalid(f"{weights.size} coefficients do not fit {count} rows of {x.dims[1]}")
    scores = _dot(call, x, weights.reshape(count, -1))
    added = np.array(call.floats("intercepts", ()), np.float32)
    if added.size not in (0, count):
        call.invalid(f"{added.size} intercepts do not fit {count} rows")
    return call.elementwise("add", scores, call.constant(added, "f32")) if added.size else scores


def _dot(call: Call, x: Value, weights: Array) -> Value:
    """[batch, features] x [count, features]."""
    other = call.constant(np.ascontiguousarray(weights.T), x.dtype)
    return call.emit(
        "dot", x, other, lhs_contract=(1,), rhs_contract=(0,), lhs_batch=(), rhs_batch=()
    )


@reads("SVMRegressor", domain=ML)
def svm_regressor(call: Call) -> Value:
    """Kernels with the support vectors, weighted and summed, or one linear form: [batch, 1]."""
    x = call.cast(rows_of(call), "f32")
    weights = np.array(call.floats("coefficients", ()), np.float32)
    vectors = np.array(call.floats("support_vectors", ()), np.float32)
    count = call.integer("n_supports", 0)
    rho, one_class = call.floats("rho", (0.0,)), call.integer("one_class", 0)
    form, parameters = call.text("kernel_type", "LINEAR"), call.floats("kernel_params", ())
    if count:
        if vectors.size != count * x.dims[1] or weights.size != count:
            call.invalid(f"{vectors.size} numbers are no {count} vectors of {x.dims[1]} features")
        x = _kernel(call, x, vectors.reshape(count, -1), form, parameters)
    elif weights.size != x.dims[1]:
        call.invalid(f"{weights.size} coefficients do not fit {x.dims[1]} features")
    score = call.elementwise("add", _dot(call, x, weights[None]), float(rho[0]))
    if one_class:
        positive = call.elementwise("lt", 0, score)
        ones = call.constant(1, "f32"), call.constant(-1, "f32")
        return call.elementwise("where", positive, *ones)
    return transformed(call, score, call.text("post_transform", "NONE"))


def _kernel(
    call: Call, x: Value, vectors: Array, form: str, parameters: tuple[float, ...]
) -> Value:
    """The kernel of each row with each support vector: [batch, vectors]."""
    gamma, offset, degree = (*parameters, 0.0, 0.0, 0.0)[:3]
    product = _dot(call, x, vectors)
    if form == "LINEAR":
        return product
    if form == "RBF":
        own = call.emit("reduce", call.emit("mul", x, x), op="sum", dims=(1,))
        theirs = call.constant((vectors.astype(np.float64) ** 2).sum(1)[None], "f32")
        squares = call.elementwise("add", own, theirs)
        distance = call.elementwise("sub", squares, call.elementwise("mul", product, 2))
        return call.emit("exp", call.elementwise("mul", distance, -gamma))
    scaled = call.elementwise("add", call.elementwise("mul", product, gamma), offset)
    if form == "POLY":
        return call.elementwise("pow", scaled, degree)
    if form != "SIGMOID":
        call.invalid(f"kernel_type must be LINEAR, POLY, RBF or SIGMOID, not {form!r}")
    return call.emit("tanh", scaled)


@reads("Imputer", domain=ML)
def imputer(call: Call) -> Value:
    """Elements of one value (often NaN) replaced, along the last dim."""
    x = call.input(0)
    floats = kind(x.dtype) == "float"
    name = "imputed_value_floats" if floats else "imputed_value_int64s"
    call.ignore("imputed_value_int64s" if floats else "imputed_value_floats")
    call.ignore("replaced_value_int64" if floats else "replaced_value_float")
    given: tuple[float, ...] = call.floats(name, ()) if floats else call.ints(name, ())
    if len(given) not in (1, x.dims[-1] if x.rank else 1):
        call.invalid(f"{name} holds {len(given)} values for {list(x.shape)}")
    if floats:
        old: float = call.number("replaced_value_float", 0.0)
    else:
        old = call.integer("replaced_value_int64", 0)
    missing = call.emit("isnan", x) if old != old else call.elementwise("eq", x, old)
    return call.elementwise("where", missing, call.constant(given, x.dtype), x)


@reads("FeatureVectorizer", domain=ML)
def feature_vectorizer(call: Call) -> Value:
    """Inputs side by side, f32."""
    call.ignore("inputdimensions")
    parts = [call.cast(value, "f32") for value in call.every()]
    wide = [call.reshape(x, (1, *x.dims)) if x.rank == 1 else x for x in parts]
    return wide[0] if len(wide) == 1 else call.emit("concat", *wide, axis=1)


@reads("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(call: Call) -> Value:
    """Columns picked by their numbers; the result has two dims at least."""
    x, index = call.input(0), call.input(1)
    if not x.rank:
        call.invalid("a scalar has no features")
    index = call.reshape(index, (int(np.prod(index.dims)),))
    found = call.emit("gather", x, index, axis=x.rank - 1)
    return call.reshape(found, (1, *found.dims)) if found.rank == 1 else found


@reads("OneHotEncoder", domain=ML)
def one_hot_encoder(call: Call) -> Value:
    """1 at the category that an element is, along a new last dim, f32."""
    if call.has("cats_strings") and call.texts("cats_strings"):
        call.on_host("its categories are strings")
    if not call.integer("zeros", 1):
        call.on_host("unknown categories are an error")
    x, known = call.input(0), np.array(call.ints("cats_int64s"), np.int64)
    whole = call.cast(x, "i64")
    hit = call.elementwise("eq", call.reshape(whole, (*x.dims, 1)), call.constant(known, "i64"))
    return call.cast(hit, "f32")


@reads("LabelEncoder", since=2, domain=ML)
def label_encoder(call: Call) -> Value:
    """Numbers looked up in a table of numbers."""
    x = call.input(0)
    keys, values, default = _table(call)
    if len(keys) != len(values) or not len(keys):
        call.invalid(f"{len(keys)} keys do not fit {len(values)} values")
    if len(keys) > MAX_KEYS:
        call.on_host(f"its table has {len(keys)} keys")
    wide = call.reshape(x, (*x.dims, 1))
    names = call.constant(keys, x.dtype)
    hit = call.elementwise("eq", wide, names)
    if call.opset >= 4 and kind(x.dtype) == "float" and np.isnan(keys).any():
        both = call.emit("isnan", wide), call.constant(np.isnan(keys), "bool")
        hit = call.elementwise("or", hit, call.elementwise("and", *both))
    numbers = call.constant(np.arange(len(keys)), "i64")
    place = call.elementwise("where", hit, numbers, call.constant(len(keys), "i64"))
    place = call.reshape(call.emit("reduce", place, op="min", dims=(x.rank,)), x.dims)
    table = np.concatenate([values, np.array([default], values.dtype)])
    return call.emit("gather", call.builder.constant(table), place, axis=0)


def _table(call: Call) -> tuple[Array, Array, float]:
    """Keys, values and the default of a LabelEncoder; strings are left to the host."""
    for name in ("keys_strings", "values_strings"):
        if call.has(name) and call.texts(name):
            call.on_host("its table holds strings")
    call.ignore("default_string")
    found = []
    for what in ("keys", "values"):
        if call.has(f"{what}_tensor"):
            found.append(call.tensor(f"{what}_tensor").ravel())
        elif call.has(f"{what}_int64s"):
            found.append(np.array(call.ints(f"{what}_int64s"), np.int64))
        else:
            found.append(np.array(call.floats(f"{what}_floats"), np.float32))
    whole = found[1].dtype.kind in "iu"
    call.ignore("default_int64", "default_float")
    if call.has("default_tensor"):
        return found[0], found[1], call.tensor("default_tensor").ravel()[0]
    default = call.integer("default_int64", -1) if whole else call.number("default_float", -0.0)
    return found[0], found[1], default
