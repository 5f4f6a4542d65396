"""The models that the programs open, each in a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING
node, info = helper.make_node, helper.make_tensor_value_info


def write_models(folder: Path) -> None:
    """All of them, into a folder."""
    for name, model in (
        ("mlp", mlp()),
        ("classifier", classifier()),
        ("image", image()),
        ("tokens", tokens()),
        ("types", types()),
        ("overridable", overridable()),
        ("sequence", sequence()),
        ("unknown_op", one("Unknown")),
        ("wrong_axis", one("Softmax", axis=7)),
    ):
        onnx.save(model, folder / f"{name}.onnx")


def model_of(
    nodes: Sequence[Any],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    weights: dict[str, Any] | None = None,
) -> Any:
    held = [numpy_helper.from_array(np.asarray(w), name) for name, w in (weights or {}).items()]
    graph = helper.make_graph(list(nodes), "small", list(inputs), list(outputs), held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def weight(*shape: int, seed: int = 0) -> Any:
    return (np.random.default_rng(seed).standard_normal(shape) / shape[0] ** 0.5).astype(np.float32)


def layers() -> tuple[list[Any], dict[str, Any]]:
    nodes = [
        node("Gemm", ["x", "w1", "b1"], ["h"], name="dense1"),
        node("Relu", ["h"], ["r"], name="relu"),
        node("Gemm", ["r", "w2", "bias"], ["scores"], name="dense2"),
        node("ArgMax", ["scores"], ["label"], name="argmax", axis=1, keepdims=0),
    ]
    weights = {
        "w1": weight(16, 32),
        "b1": weight(32),
        "w2": weight(32, 5, seed=1),
        "bias": weight(5),
    }
    return nodes, weights


def mlp() -> Any:
    """Scores and labels of rows of 16 numbers."""
    nodes, weights = layers()
    x = info("x", FLOAT, ["batch", 16])
    x.type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    outputs = [info("scores", FLOAT, ["batch", 5]), info("label", INT64, ["batch"])]
    return model_of(nodes, [x], outputs, weights)


def classifier() -> Any:
    """The same of one row, with probabilities and all that a file can say about itself."""
    nodes, weights = layers()
    nodes.append(node("Softmax", ["scores"], ["probabilities"], axis=1))
    outputs = [info("label", INT64, [1]), info("probabilities", FLOAT, [1, 5])]
    model = model_of(nodes, [info("x", FLOAT, [1, 16])], outputs, weights)
    model.producer_name, model.domain, model.model_version = "trainer", "org.example", 7
    model.doc_string, model.graph.doc_string = "five classes", "two layers"
    helper.set_model_props(model, {"author": "someone", "classes": "5"})
    return model


def image() -> Any:
    """Sixteen features of an image."""
    nodes = [
        node("Conv", ["image", "k"], ["c"], pads=[1, 1, 1, 1]),
        node("Relu", ["c"], ["r"]),
        node("GlobalAveragePool", ["r"], ["p"]),
        node("Flatten", ["p"], ["features"]),
    ]
    kernel = {"k": weight(16, 3, 3, 3)}
    inputs = [info("image", FLOAT, ["n", 3, 8, 8])]
    return model_of(nodes, inputs, [info("features", FLOAT, ["n", 16])], kernel)


def tokens() -> Any:
    """The mean of the embeddings of the tokens that a mask keeps."""
    nodes = [
        node("Gather", ["table", "input_ids"], ["e"]),
        node("Cast", ["attention_mask"], ["m"], to=FLOAT),
        node("Unsqueeze", ["m", "last"], ["m3"]),
        node("Mul", ["e", "m3"], ["kept"]),
        node("ReduceSum", ["kept", "one"], ["total"], keepdims=0),
        node("ReduceSum", ["m3", "one"], ["count"], keepdims=0),
        node("Div", ["total", "count"], ["pooled"]),
    ]
    inputs = [info(name, INT64, ["batch", "length"]) for name in ("input_ids", "attention_mask")]
    weights = {"table": weight(50, 8), "last": np.array([-1]), "one": np.array([1])}
    return model_of(nodes, inputs, [info("pooled", FLOAT, ["batch", 8])], weights)


def types() -> Any:
    """Each input as it is, or added to itself."""
    codes = {"f": 1, "d": 11, "h": 10, "i": 6, "l": 7, "b": 9, "u": 2}
    nodes = [
        node("Not" if name == "b" else "Identity" if name in "hu" else "Add", args, [f"{name}_out"])
        for name in codes
        for args in [[name] if name in "bhu" else [name, name]]
    ]
    inputs = [info(name, code, [2]) for name, code in codes.items()]
    return model_of(nodes, inputs, [info(f"{n}_out", c, [2]) for n, c in codes.items()])


def overridable() -> Any:
    """A product with a weight that is an input too."""
    inputs = [info("x", FLOAT, [3]), info("scale", FLOAT, [3])]
    held = {"scale": np.full(3, 2, np.float32)}
    return model_of([node("Mul", ["x", "scale"], ["y"])], inputs, [info("y", FLOAT, [3])], held)


def sequence() -> Any:
    """Strings as they are, and a vector cut into pairs."""
    nodes = [
        node("Identity", ["texts"], ["names"]),
        node("SplitToSequence", ["x", "two"], ["parts"], axis=0),
    ]
    outputs = [
        info("names", STRING, ["n"]),
        helper.make_tensor_sequence_value_info("parts", FLOAT, None),
    ]
    inputs = [info("texts", STRING, ["n"]), info("x", FLOAT, ["m"])]
    return model_of(nodes, inputs, outputs, {"two": np.array(2)})


def one(op: str, **attributes: Any) -> Any:
    """A model of one node that nothing can run."""
    ends = [info("x", FLOAT, [3])], [info("y", FLOAT, [3])]
    return model_of([node(op, ["x"], ["y"], **attributes)], *ends)
