"""RNN, GRU and LSTM with every attribute, against onnxruntime and through the compiler."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx_models import Array, model_of, truth

from rooftile.core.errors import InvalidModel, UnsupportedOp
from rooftile.frontends.onnx import read
from rooftile.ops.evaluate import check_types, evaluate
from rooftile.pipeline import compile_model

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
FUNCTIONS = {"RNN": 1, "GRU": 2, "LSTM": 3}
BATCH, WIDTH, SIZE = 3, 5, 6
CLIP = 0.3


def numbers(*shape: int, seed: int = 0) -> Array:
    rng = np.random.default_rng(sum(shape) + seed)
    return (rng.standard_normal(shape) / 2).astype(np.float32)


def node(
    op: str, steps: int, *extra: str, direction: str = "forward", **attributes: Any
) -> tuple[Any, dict[str, Array]]:
    """A model of one node with the optional inputs named in `extra`, and its feeds.

    Initial states and lengths are inputs, the rest is constant; "W" and "R" make those inputs too.
    """
    count, rows = 2 if direction == "bidirectional" else 1, GATES[op] * SIZE
    tensors = {
        "X": numbers(steps, BATCH, WIDTH),
        "W": numbers(count, rows, WIDTH),
        "R": numbers(count, rows, SIZE, seed=1),
        "B": numbers(count, 2 * rows),
        "lengths": np.array([steps, 1, max(1, steps - 1)], np.int32),
        "h": numbers(count, BATCH, SIZE),
        "c": numbers(count, BATCH, SIZE, seed=2),
        "P": numbers(count, 3 * SIZE, seed=3),
    }
    order = list(tensors)[: 8 if op == "LSTM" else 6]
    names = [name if name in ("X", "W", "R", *extra) else "" for name in order]
    while not names[-1]:
        names.pop()
    inputs = ("X", "lengths", "h", "c", *(name for name in extra if name in "WR"))
    feeds = {name: tensors[name] for name in names if name in inputs}
    constants = {name: tensors[name] for name in names if name and name not in inputs}
    outputs = ["Y", "Y_h", "Y_c"][: 3 if op == "LSTM" else 2]
    made = helper.make_node(op, names, outputs, hidden_size=SIZE, direction=direction, **attributes)
    return model_of([made], feeds, outputs, constants), feeds


def same(model: Any, feeds: dict[str, Array]) -> None:
    wanted = truth(model, feeds)
    graph = check_types(read(model))
    compiled = compile_model(model).executable.run(list(feeds.values()))
    for name, got, want in zip(graph.outputs, compiled, wanted, strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-6, err_msg=name)
        np.testing.assert_allclose(evaluate(graph, feeds)[name], want, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("op", GATES)
def test_directions(op: str, direction: str) -> None:
    same(*node(op, 7, "B", "h", direction=direction))


@pytest.mark.parametrize("steps", [1, 2, 6])
@pytest.mark.parametrize("op", GATES)
def test_lengths_of_sequences(op: str, steps: int) -> None:
    """Behind their end Y is zero; the last states are those at the end, in both directions."""
    extra = ("B", "lengths", "h", "c")[: 4 if op == "LSTM" else 3]
    same(*node(op, steps, *extra, direction="bidirectional"))


def test_full_lengths_that_are_known_mask_nothing() -> None:
    model, feeds = node("GRU", 5, "lengths")
    del feeds["lengths"]
    kept = [item for item in model.graph.input if item.name != "lengths"]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    model.graph.initializer.append(helper.make_tensor("lengths", 6, [BATCH], [5] * BATCH))
    [scan] = [node for node in read(model).nodes if node.op == "scan"]
    assert not any(inner.op == "where" for inner in scan.attr("body").nodes)
    same(model, feeds)


@pytest.mark.parametrize("op", GATES)
def test_weights_that_are_inputs(op: str) -> None:
    same(*node(op, 6, "W", "R", "B"))


@pytest.mark.parametrize("flag", [0, 1])
@pytest.mark.parametrize("bias", ["B", "h"])
def test_gru_resets_before_or_behind_the_product(flag: int, bias: str) -> None:
    same(*node("GRU", 6, bias, linear_before_reset=flag))


@pytest.mark.parametrize("forget", [0, 1])
@pytest.mark.parametrize("steps", [3, 6])
def test_lstm_peepholes_and_coupled_gates(forget: int, steps: int) -> None:
    same(*node("LSTM", steps, "B", "h", "c", "P", input_forget=forget))


@pytest.mark.parametrize("op", GATES)
def test_clip(op: str) -> None:
    same(*node(op, 6, "B", clip=CLIP))


PARAMETERS: dict[str, tuple[list[float], list[float]]] = {
    "Relu": ([], []),
    "Tanh": ([], []),
    "Sigmoid": ([], []),
    "Softsign": ([], []),
    "Softplus": ([], []),
    "Elu": ([0.7], []),
    "LeakyRelu": ([0.2], []),
    "ThresholdedRelu": ([0.1], []),
    "HardSigmoid": ([0.3], [0.4]),
    "Affine": ([0.6], [0.1]),
    "ScaledTanh": ([0.8], [0.9]),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_activations(name: str) -> None:
    """The second function takes the parameters that the first leaves over."""
    alphas, betas = PARAMETERS[name]
    functions: dict[str, Any] = {"activations": [name, "LeakyRelu"]}
    functions["activation_alpha"] = [*alphas, 0.25]
    if betas:
        functions["activation_beta"] = betas
    same(*node("GRU", 5, "B", **functions))


def test_each_direction_has_its_functions() -> None:
    names = ["Sigmoid", "Tanh", "Relu", "HardSigmoid", "Softsign", "Tanh"]
    same(*node("LSTM", 5, "B", direction="bidirectional", activations=names))


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("steps", [2, 5])
def test_layout_by_batch(op: str, steps: int) -> None:
    """onnxruntime has no layout 1, so its results are transposed."""
    model, feeds = node(op, steps, "B", "h", direction="bidirectional")
    turned, _ = node(op, steps, "B", "h", direction="bidirectional", layout=1)
    swapped = {name: array.swapaxes(0, 1) for name, array in feeds.items()}
    for item in turned.graph.input:
        for dim, extent in zip(
            item.type.tensor_type.shape.dim, swapped[item.name].shape, strict=True
        ):
            dim.dim_value = extent
    y, *last = truth(model, feeds)
    wanted = [y.transpose(2, 0, 1, 3), *(state.swapaxes(0, 1) for state in last)]
    given = [np.ascontiguousarray(array) for array in swapped.values()]
    for got, want in zip(compile_model(turned).executable.run(given), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-6)


def test_few_steps_are_written_out_and_many_are_a_loop() -> None:
    def ops(steps: int) -> set[str]:
        return {item.op for item in read(node("LSTM", steps)[0]).nodes}

    assert "scan" not in ops(4) and "scan" in ops(5)


def test_rows_that_nobody_asks_for_are_not_kept() -> None:
    model, _ = node("RNN", 6)
    model.graph.node[0].output[0] = ""
    del model.graph.output[0]
    [scan] = [item for item in read(model).nodes if item.op == "scan"]
    assert len(scan.outputs) == 1


REFUSED: dict[str, dict[str, Any]] = {
    "direction must be one of forward, reverse, bidirectional, not 'up'": {"direction": "up"},
    r"hidden_size must be 6, as R \[1, 6, 6\] has it": {"hidden_size": 4},
    "3 activations are given, 1 are needed": {"activations": ["Tanh"] * 3},
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_does_not_fit_is_refused(message: str) -> None:
    model, _ = node("RNN", 2)
    made = model.graph.node[0]
    for name, value in REFUSED[message].items():
        kept = [item for item in made.attribute if item.name != name]
        del made.attribute[:]
        made.attribute.extend([*kept, helper.make_attribute(name, value)])
    with pytest.raises(InvalidModel, match=message):
        read(model)


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("R", (2, 6, 6), "X, W, R of shapes .* do not fit 1 direction"),
        ("B", (1, 7), r"B \[1, 7\] must be \[1, 12\]"),
    ],
)
def test_weights_of_other_shapes_are_refused(
    name: str, shape: tuple[int, ...], message: str
) -> None:
    model, _ = node("RNN", 2, "B")
    for tensor in model.graph.initializer:
        if tensor.name == name:
            tensor.CopyFrom(helper.make_tensor(name, 1, shape, np.zeros(shape).ravel()))
    with pytest.raises(InvalidModel, match=message):
        read(model)


def test_an_unknown_activation_is_named() -> None:
    model, _ = node("RNN", 2, activations=["Gelu"])
    with pytest.raises(UnsupportedOp, match="activation 'Gelu' is not supported"):
        read(model)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("opset", [1, 3, 6])
def test_layers_of_the_first_opsets(op: str, opset: int) -> None:
    """They mean what those of opset 7 do; `output_sequence` says that Y is wanted."""
    model, feeds = node(op, 4, "B", "lengths", "h", direction="bidirectional")
    wanted = truth(model, feeds)
    model.opset_import[0].version = opset
    model.graph.node[0].attribute.append(helper.make_attribute("output_sequence", 1))
    found = evaluate(read(model), feeds)
    for mine, theirs in zip(found.values(), wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)
