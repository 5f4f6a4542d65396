"""Steps of random models: arithmetic, logic and casts, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from model_maker import Maker
from model_values import Value
from onnx import helper

Step = Callable[[Maker], Any]
FREE = (
    *("Abs", "Neg", "Relu", "Sigmoid", "Tanh", "Erf", "Sin", "Cos", "Softplus", "LeakyRelu", "Elu"),
    *("Selu", "HardSigmoid", "HardSwish", "Softsign", "Mish", "Celu", "Identity", "Sinh", "Atan"),
    *("Floor", "Ceil", "Round", "Sign", "ThresholdedRelu", "Shrink", "Gelu", "Asinh", "Exp"),
)
BOUNDED = ("Asin", "Acos", "Atanh", "Tan")
POSITIVE = ("Log", "Sqrt", "Reciprocal")
ROUND_NOTHING = frozenset(("Abs", "Neg", "Relu", "Identity", "Floor", "Ceil", "Round", "Sign"))
SINCE = {"Gelu": 20}
FLOATS = ("float32", "float32", "float16", "float64")
WHOLE = ("int32", "int64", "uint8", "int8")


def unary(make: Maker) -> Any:
    x = make.float_value()
    op = make.pick(FREE)
    if x is None or make.opset < SINCE.get(op, 0) or (op == "Celu" and x.dtype.name != "float32"):
        return None
    more = {"approximate": make.pick(("none", "tanh"))} if op == "Gelu" else {}
    return make.add(op, x, exact=op in ROUND_NOTHING, **more)


def unary_of_few(make: Maker) -> Any:
    """Functions of -1 to 1, or of positive numbers: brought there first."""
    x = make.float_value()
    if x is None:
        return None
    if make.chance(2):
        made = make.add("Tanh", x)
        made = made and make.add("Mul", made[0], make.constant(0.9, x.dtype))
        return made and make.add(make.pick(BOUNDED), made[0])
    made = make.add("Abs", x, exact=True)
    made = made and make.add("Add", made[0], make.constant(0.5, x.dtype))
    return made and make.add(make.pick(POSITIVE), made[0])


def unary_of_integers(make: Maker) -> Any:
    x = make.value(lambda v: not v.is_float)
    if x is None:
        return None
    if x.dtype.kind == "b":
        return make.add("Not", x)
    return make.add(
        make.pick(("Abs", "BitwiseNot", "Sign") if x.dtype.kind == "u" else ("Neg", "Abs", "Sign")),
        x,
    )


def partner(make: Maker, x: Value) -> Value:
    """A second operand: a value that broadcasts with x, or a constant that does."""
    found = make.value(lambda v: v.dtype == x.dtype and broadcasts(v, x))
    if found is not None and not make.chance(3):
        return found
    shape = [make.pick((1, extent, extent)) for extent in x.shape]
    shape = shape[make.random.randrange(len(shape) + 1) :]
    if make.chance(4) and len(shape) < 4:
        shape = [make.pick((1, 2)), *[1] * (x.rank - len(shape)), *shape]
    return make.weights(shape, x.dtype)


def broadcasts(a: Value, b: Value) -> bool:
    """Whether the shapes broadcast."""
    pairs = zip(reversed(a.shape), reversed(b.shape), strict=False)
    return all(m == n or 1 in (m, n) for m, n in pairs)


def either(make: Maker, x: Value, y: Value) -> tuple[Value, Value]:
    """Both in either order."""
    return (x, y) if make.chance(2) else (y, x)


def binary(make: Maker) -> Any:
    x = make.float_value()
    if x is None:
        return None
    op = make.pick(("Add", "Sub", "Mul", "Max", "Min", "Add", "Mul", "PRelu"))
    if op == "PRelu":
        shape = [make.pick((1, extent)) for extent in x.shape]
        return make.add(op, x, make.weights(shape, x.dtype))
    return make.add(op, *either(make, x, partner(make, x)), exact=op in ("Max", "Min"))


def quotient(make: Maker) -> Any:
    x = make.float_value()
    if x is None:
        return None
    y = make.add("Abs", partner(make, x), exact=True)
    y = y and make.add("Add", y[0], make.constant(0.5, x.dtype))
    if not y:
        return None
    return (
        make.add("Pow", y[0], make.constant(make.pick((2, 0.5, -1, 3)), x.dtype))
        if make.chance(3)
        else make.add("Div", x, y[0])
    )


def variadic(make: Maker) -> Any:
    x = make.float_value()
    if x is None:
        return None
    found = [x]
    for _ in range(make.random.randrange(3)):
        other = partner(make, x)
        if all(broadcasts(value, other) for value in found):
            found.append(other)
    return make.add(make.pick(("Sum", "Mean", "Max", "Min")), *found)


def integers(make: Maker) -> Any:
    x = make.value(lambda v: v.dtype.kind in "iu")
    if x is None:
        return None
    op = make.pick(
        ("Add", "Sub", "Mul", "Max", "Min", "Div", "Mod", "BitwiseAnd", "BitwiseOr", "BitwiseXor")
    )
    if op in ("Div", "Mod"):
        return make.add(op, x, make.constant(make.generator.integers(1, 6, x.shape[-1:]), x.dtype))
    return make.add(op, *either(make, x, partner(make, x)))


def compared(make: Maker) -> Any:
    x = make.value(lambda v: v.dtype.kind != "b")
    if x is None:
        return None
    op = make.pick(("Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Equal"))
    return make.add(op, x, partner(make, x), dtypes=["bool"], exact=True)


def logic(make: Maker) -> Any:
    x = make.value(lambda v: v.dtype.kind == "b")
    return x and make.add(make.pick(("And", "Or", "Xor", "Equal")), x, partner(make, x))


def chosen(make: Maker) -> Any:
    x = make.value()
    if x is None:
        return None
    other = partner(make, x)
    parts = either(make, x, other)
    condition = make.value(
        lambda v: v.dtype.kind == "b" and broadcasts(v, x) and broadcasts(v, other)
    )
    condition = condition or make.weights([make.pick((1, n)) for n in x.shape], "bool")
    return make.add("Where", condition, *parts, dtypes=[x.dtype], exact=True)


def cast(make: Maker) -> Any:
    """Between all types; floats that do not fit an integer type are left alone."""
    x = make.value()
    if x is None:
        return None
    to = np.dtype(make.pick((*FLOATS, *WHOLE, "bool")))
    if to.kind in "iu" and not (np.iinfo(to).min <= -x.largest or to.kind != "u"):
        return None
    if to.kind in "iu" and x.dtype.kind == "f":
        info = np.iinfo(to)
        least = float(np.min(x.runs[0], initial=0.0))
        if x.largest > info.max - 1 or least < info.min + 1:
            return None
    narrows = to.kind == "f" and (x.dtype.kind != "f" or to.itemsize < x.dtype.itemsize)
    code = helper.np_dtype_to_tensor_dtype(to)
    return make.add("Cast", x, dtypes=[to], exact=not narrows, to=code)


def clipped(make: Maker) -> Any:
    x = make.value(lambda v: v.dtype.kind in "fiu")
    if x is None:
        return None
    low, high = sorted(make.random.sample(range(8), 2))
    bounds = [
        make.constant(low - 1 if x.dtype.kind != "u" else low, x.dtype),
        make.constant(high, x.dtype),
    ]
    return make.add(
        "Clip", x, *make.pick(((*bounds,), (bounds[0],), (None, bounds[1]))), exact=True
    )


ARITHMETIC: tuple[Step, ...] = (
    *(unary, unary, unary, unary_of_few, unary_of_integers, binary, binary, binary, quotient),
    *(variadic, integers, compared, logic, chosen, cast, cast, clipped),
)


def elements(shape: Sequence[int]) -> int:
    """How many elements a shape holds."""
    return math.prod(shape)
