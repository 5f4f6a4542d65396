"""Ops on the host, each as a model of one node, held against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx_models import floats
from onnx_sessions import any_of, hosted, info, model_with, ran

import rooftile as rt

TEXTS = np.array(["Monday", "tuesday", "MONDAY", "", "friday"], object)
X = floats(3, 4)


def node(op: str, *inputs: Any, outputs: int = 1, opset: int = 17, **attributes: Any) -> Any:
    """A model of one node and its feeds; None is an input left out."""
    names = ["" if item is None else f"in{place}" for place, item in enumerate(inputs)]
    feeds = {name: item for name, item in zip(names, inputs, strict=True) if name}
    results = [f"out{place}" for place in range(outputs)]
    made = helper.make_node(op, names, results, name="it", **attributes)
    declared = [info(name, array) for name, array in feeds.items()]
    return model_with([made], declared, any_of(*results), opset), feeds


@pytest.mark.parametrize(
    ("attributes", "wanted"),
    [
        ({}, TEXTS.tolist()),
        (
            {"stopwords": ["monday"], "case_change_action": "UPPER"},
            ["TUESDAY", "", "FRIDAY"],
        ),
        (
            {"stopwords": ["MONDAY"], "case_change_action": "LOWER", "is_case_sensitive": 1},
            ["monday", "tuesday", "", "friday"],
        ),
        ({"stopwords": ["monday", "tuesday", "", "friday"]}, [""]),
    ],
)
def test_string_normalizer(attributes: dict[str, Any], wanted: list[str]) -> None:
    """Not held against onnxruntime, which needs a locale that machines lack."""
    for texts in (TEXTS, TEXTS.reshape(1, 5)):
        model, feeds = node("StringNormalizer", texts, **attributes)
        [found] = rt.InferenceSession(model.SerializeToString()).run(None, feeds)
        assert found.ndim == texts.ndim and found.ravel().tolist() == wanted


def on_host(op: str, *inputs: Any, **more: Any) -> None:
    """Assert that the op runs on the host and gives what onnxruntime gives."""
    assert hosted(ran(*node(op, *inputs, **more))) == [op]


@pytest.mark.parametrize(
    ("op", "inputs", "more"),
    [
        ("NonZero", [X > 0], {}),
        ("NonZero", [np.array(3.0, np.float32)], {}),
        ("Compress", [X, np.array([True, False, True])], {"axis": 0}),
        ("Compress", [X, np.array([False, True, True])], {"axis": -1}),
        ("Compress", [X, np.array([False, True, True, False, True])], {}),
        ("Unique", [np.array([2, 1, 1, 3, 2])], {"outputs": 4}),
        ("Unique", [np.array([2, 1, 1, 3, 2])], {"outputs": 4, "sorted": 0}),
        ("Unique", [np.array([[1, 0], [1, 0], [0, 2]], np.float32)], {"outputs": 4, "axis": 0}),
        ("Unique", [TEXTS], {"outputs": 4}),
        ("Gather", [TEXTS, np.array([[1, -1]])], {}),
        ("Concat", [TEXTS, TEXTS], {"axis": 0}),
        ("Identity", [TEXTS], {}),
        ("Reshape", [TEXTS, np.array([5, 1])], {}),
        ("Flatten", [TEXTS.reshape(5, 1)], {"axis": 0}),
        ("Squeeze", [TEXTS.reshape(5, 1), np.array([1])], {}),
        ("Unsqueeze", [TEXTS, np.array([0, 2])], {}),
        ("Transpose", [TEXTS.reshape(5, 1)], {}),
        ("Expand", [TEXTS, np.array([2, 5])], {}),
        ("Tile", [TEXTS, np.array([2])], {"opset": 13}),
        ("Slice", [TEXTS, np.array([-1]), np.array([-9]), np.array([0]), np.array([-2])], {}),
        ("Slice", [TEXTS, np.array([-9]), np.array([-99]), np.array([0]), np.array([-1])], {}),
        ("Split", [TEXTS, np.array([2, 3])], {"outputs": 2}),
        ("GatherElements", [TEXTS, np.array([4, 0, 1])], {}),
        ("Equal", [TEXTS, TEXTS[::-1]], {"opset": 19}),
        ("Where", [np.array([True, False, True, False, True]), TEXTS, TEXTS[::-1]], {}),
        ("Shape", [TEXTS], {}),
        ("Size", [TEXTS], {}),
        ("StringConcat", [TEXTS, np.array(["x"], object)], {"opset": 20}),
        ("StringSplit", [TEXTS], {"opset": 20, "outputs": 2, "delimiter": "d", "maxsplit": 1}),
        ("RegexFullMatch", [TEXTS], {"opset": 20, "pattern": "[a-z]+"}),
        ("Cast", [TEXTS[:1] * 0 + np.array(["-12"], object)], {"to": 7}),
        ("Cast", [np.array(["1.5", "inf", "-2e3"], object)], {"to": 1}),
        ("Cast", [np.array([1, -7])], {"to": 8}),
        ("Cast", [np.array([1.5, 1e-7, 12345678.0, np.inf, np.nan], np.float32)], {"to": 8}),
        ("Cast", [np.array([0.1, 1e300])], {"to": 8}),
    ],
)
def test_like_onnxruntime(op: str, inputs: list[Any], more: dict[str, Any]) -> None:
    on_host(op, *inputs, **more)


ML = {"domain": "ai.onnx.ml"}
ROWS = np.array([[1, 5, 3, 4, 3], [2, 2, 7, 1, 5]])


@pytest.mark.parametrize(
    ("op", "inputs", "more"),
    [
        ("LabelEncoder", [TEXTS], {"keys_strings": ["friday", ""], "values_int64s": [7, 8], **ML}),
        ("LabelEncoder", [np.array([1, 2])], {"keys_int64s": [2], "values_strings": ["b"], **ML}),
        ("CategoryMapper", [TEXTS], {"cats_strings": ["", "friday"], "cats_int64s": [5, 6], **ML}),
        ("CategoryMapper", [np.array([5])], {"cats_strings": ["q"], "cats_int64s": [5], **ML}),
        ("ZipMap", [X], {"classlabels_int64s": [3, 1, 7, 9], **ML}),
        ("ZipMap", [X], {"classlabels_strings": ["a", "b", "c", "d"], **ML}),
        *(
            (
                "TfIdfVectorizer",
                [ROWS],
                {
                    "mode": mode,
                    "min_gram_length": 1,
                    "max_gram_length": 2,
                    "max_skip_count": 2,
                    "ngram_counts": [0, 3],
                    "ngram_indexes": [2, 0, 1, 3, 4],
                    "pool_int64s": [3, 5, 2, 5, 4, 2, 1],
                    "weights": [0.5, 2.0, 3.0, 4.0, 5.0],
                },
            )
            for mode in ("TF", "IDF", "TFIDF")
        ),
    ],
)
def test_features_like_onnxruntime(op: str, inputs: list[Any], more: dict[str, Any]) -> None:
    on_host(op, *inputs, **more)


@pytest.mark.parametrize("center", [0, 1])
def test_non_max_suppression(center: int) -> None:
    generator = np.random.default_rng(1)
    boxes = generator.uniform(0, 1, (2, 40, 4)).astype(np.float32)
    scores = generator.uniform(0, 1, (2, 3, 40)).astype(np.float32)
    limits = np.array([8]), np.array([0.3], np.float32), np.array([0.4], np.float32)
    on_host("NonMaxSuppression", boxes, scores, *limits, center_point_box=center)
    on_host("NonMaxSuppression", boxes, scores, np.array([2]))
    on_host("NonMaxSuppression", boxes, scores)


def steps(nodes: list[Any], feeds: dict[str, Any], *outputs: str, opset: int = 17) -> None:
    declared = [info(name, array) for name, array in feeds.items()]
    ran(model_with(nodes, declared, any_of(*outputs), opset), feeds)


make = helper.make_node


def test_sequences() -> None:
    steps(
        [
            make("SplitToSequence", ["x"], ["each"], axis=1, keepdims=0),
            make("SequenceLength", ["each"], ["n"]),
            make("SequenceAt", ["each", "at"], ["one"]),
            make("SequenceErase", ["each", "at"], ["less"]),
            make("SequenceErase", ["less"], ["fewer"]),
            make("ConcatFromSequence", ["fewer"], ["c"], axis=0, new_axis=1),
            make("SplitToSequence", ["x", "sizes"], ["parts"], axis=0),
            make("SequenceInsert", ["parts", "x", "at"], ["more"]),
            make("SequenceConstruct", ["x", "one"], ["pair"]),
        ],
        {"x": X, "at": np.array(-2), "sizes": np.array([1, 2])},
        *("each", "n", "one", "c", "parts", "more", "pair"),
    )


def test_parts_of_one_size() -> None:
    steps(
        [make("SplitToSequence", ["x", "size"], ["parts"], axis=1)],
        {"x": X, "size": np.array(3)},
        "parts",
    )


def test_random_generators() -> None:
    model = model_with(
        [
            make("RandomNormal", [], ["a"], shape=[2, 300], mean=3.0, scale=0.5, seed=1.0),
            make("RandomUniform", [], ["b"], shape=[500], low=-1.0, high=2.0, dtype=11),
            make("RandomNormalLike", ["x"], ["c"], seed=1.0),
            make("RandomUniformLike", ["x"], ["d"], dtype=10),
            make("Multinomial", ["odds"], ["e"], sample_size=400, dtype=7),
            make("Bernoulli", ["p"], ["f"], dtype=9),
        ],
        [info("x", X), info("odds", np.zeros((2, 3), np.float32)), info("p", X)],
        any_of("a", "b", "c", "d", "e", "f"),
    )
    session = rt.InferenceSession(model.SerializeToString())
    odds = np.log(np.array([[1, 1e-12, 1], [1e-12, 1e-12, 1]], np.float32))
    p = np.array([[0, 1, 0, 1]] * 3, np.float32)
    a, b, c, d, e, f = session.run(None, {"x": X, "odds": odds, "p": p})
    again = session.run(None, {"x": X, "odds": odds, "p": p})
    assert (a.dtype, b.dtype, d.dtype, e.dtype, f.dtype) == (
        *(np.float32, np.float64, np.float16, np.int64, np.bool_),
    )
    assert abs(a.mean() - 3) < 0.1 and abs(a.std() - 0.5) < 0.1
    assert -1 <= b.min() < -0.5 and 1.5 < b.max() < 2
    assert c.shape == d.shape == X.shape
    assert e.shape == (2, 400) and set(e[0]) == {0, 2} and set(e[1]) == {2}
    np.testing.assert_array_equal(f, p)
    np.testing.assert_array_equal(a, again[0])
    assert not np.array_equal(b, again[1])


def test_dropout_in_training() -> None:
    model, feeds = node(
        "Dropout", np.ones((50, 50), np.float32), np.array(0.25, np.float32), np.array(True)
    )
    session = rt.InferenceSession(model.SerializeToString())
    [y] = session.run(None, feeds)
    assert set(np.unique(y)) == {np.float32(0), np.float32(1 / 0.75)}
    assert 0.2 < (y == 0).mean() < 0.3
    [y] = session.run(None, {**feeds, "in2": np.array(False)})
    np.testing.assert_array_equal(y, feeds["in0"])
    assert hosted(session) == ["Dropout"]


@pytest.mark.parametrize(
    ("op", "inputs", "more", "message"),
    [
        ("Cast", [np.array(["x"], object)], {"to": 1}, "a string is no float32"),
        ("StringNormalizer", [TEXTS.reshape(5, 1)], {}, r"\[C\] or \[1, C\] are needed"),
        ("StringNormalizer", [TEXTS], {"case_change_action": "x"}, "case_change_action 'x'"),
        ("RegexFullMatch", [TEXTS], {"pattern": "(", "opset": 20}, "is not understood"),
        ("RegexFullMatch", [TEXTS], {"pattern": "(a{999}){999}", "opset": 20}, "10000 states"),
        ("Gather", [TEXTS, np.array([9])], {}, "index 9 is out of bounds"),
        ("Split", [TEXTS, np.array([2, 2])], {"outputs": 2}, r"parts of \[2, 2\] do not make up"),
        ("Expand", [TEXTS, np.array([1 << 40, 5])], {}, "cannot be made"),
        ("SplitToSequence", [X, np.array(0)], {}, "parts of size 0"),
        ("SplitToSequence", [X, np.array([9])], {}, r"parts of \[9\] do not make up"),
        ("RandomNormal", [], {"shape": [1 << 40]}, "are too many"),
        ("RandomNormal", [], {"shape": [1], "dtype": 99}, "element type 99 is not known"),
        ("ImageDecoder", [np.zeros(3, np.uint8)], {"opset": 20}, "Pillow|cannot be decoded"),
        ("NonMaxSuppression", [X, X], {}, r"boxes \[batch, n, 4\]"),
        ("LabelEncoder", [TEXTS], {"keys_strings": ["a"], **ML}, "1 keys do not fit 0 values"),
        ("ZipMap", [X], {"classlabels_int64s": [1], **ML}, "4 columns do not fit 1 labels"),
    ],
)
def test_refused(op: str, inputs: list[Any], more: dict[str, Any], message: str) -> None:
    model, feeds = node(op, *inputs, **more)
    session = rt.InferenceSession(model.SerializeToString())
    with pytest.raises(rt.RooftileError, match=message) as caught:
        session.run(None, feeds)
    assert str(caught.value).startswith(f"node it ({op})")


def test_maps() -> None:
    key = helper.make_tensor_type_proto(1, [])
    x = helper.make_value_info("x", helper.make_map_type_proto(7, key))
    model = model_with(
        [
            make("DictVectorizer", ["x"], ["v"], int64_vocabulary=[3, 9, 1], domain="ai.onnx.ml"),
            make("CastMap", ["x"], ["dense"], domain="ai.onnx.ml"),
            make(
                *("CastMap", ["x"], ["sparse"]),
                domain="ai.onnx.ml",
                map_form="SPARSE",
                max_map=4,
                cast_to="TO_INT64",
            ),
        ],
        [x],
        any_of("v", "dense", "sparse"),
    )
    session = rt.InferenceSession(model.SerializeToString())
    v, dense, sparse = session.run(None, {"x": {3: 1.5, 1: 2.0}})
    assert v.tolist() == [[1.5, 0.0, 2.0]]
    assert dense.tolist() == [[2.0, 1.5]]
    assert (sparse.dtype, sparse.tolist()) == (np.int64, [[0, 2, 0, 1]])


def test_sequences_refuse_places_outside() -> None:
    nodes = [
        make("SequenceConstruct", ["x"], ["s"]),
        make("SequenceAt", ["s", "at"], ["y"], name="pick"),
    ]
    model = model_with(nodes, [info("x", X), info("at", np.array(3))], any_of("y"))
    session = rt.InferenceSession(model.SerializeToString())
    with pytest.raises(rt.InvalidInput, match=r"node pick \(SequenceAt\): position 3 is outside"):
        session.run(None, {"x": X, "at": np.array(3)})


def test_optionals() -> None:
    nodes = [
        make("Optional", ["x"], ["o"]),
        make("OptionalHasElement", ["o"], ["h"]),
        make("OptionalGetElement", ["o"], ["y"]),
        make("SequenceEmpty", [], ["s"]),
        make("Optional", ["s"], ["os"]),
        make("OptionalGetElement", ["os"], ["t"]),
        make("SequenceInsert", ["t", "y"], ["u"]),
    ]
    session = ran(model_with(nodes, [info("x", X)], any_of("h", "y", "u"), 18), {"x": X})
    assert "OptionalHasElement" in hosted(session)


def test_values_that_kernels_take_over() -> None:
    """The host computes what changes too often, though kernels can: the bodies agree."""
    from rooftile.host import BODIES

    def body(op: str, domain: str = "") -> Any:
        return BODIES[domain, op].function

    nan = float("nan")
    labels = body("LabelEncoder", "ai.onnx.ml")
    keys = {"keys_floats": [nan], "values_floats": [0.5], "default_float": 3.0}
    assert labels(np.array([1, nan], np.float32), **keys).tolist() == [3.0, 0.5]
    tables = {
        "keys_tensor": np.array([1, 2]),
        "values_tensor": np.array(["a", "b"], object),
        "default_tensor": np.array(["z"], object),
    }
    assert labels(np.array([2, 3]), **tables).tolist() == ["b", "z"]
    assert labels(np.array(["b", "q"], object), classes_strings=["a", "b"]).tolist() == [1, -1]
    assert labels(np.array([1, 9]), classes_strings=["a", "b"]).tolist() == ["b", "_Unused"]
    columns = body("ArrayFeatureExtractor", "ai.onnx.ml")
    np.testing.assert_array_equal(columns(X, np.array([[2, 0]])), X[:, [2, 0]])
    assert columns(X[0], np.array([3])).shape == (1, 1)
    count = body("Range")(np.array(5), np.array(1), np.array(-2))
    assert (count.dtype, count.tolist()) == (np.int64, [5, 3])
    with pytest.raises(rt.InvalidInput, match="delta is 0"):
        body("Range")(np.array(5), np.array(1), np.array(0))
    filled = body("ConstantOfShape")(np.array([2, 1]), np.array([7], np.int8))
    assert (filled.dtype, filled.tolist()) == (np.int8, [[7], [7]])
    assert body("ConstantOfShape")(np.array([1])).dtype == np.float32
    assert body("Split")(np.arange(5), num_outputs=2)[1].tolist() == [3, 4]
    with pytest.raises(rt.InvalidInput, match="neither sizes nor a number of parts"):
        body("Split")(np.arange(5))
    assert body("Reshape")(X, np.array([0, -1])).shape == (3, 4)
    assert body("CastLike")(np.array([1.5]), np.array(["x"], object)).tolist() == ["1.5"]
    assert body("CastLike")(np.array(["1"], object), np.array([2])).tolist() == [1]
    assert body("CastLike")(np.array([1.5]), np.array([2])).tolist() == [1]
    assert body("Cast")(np.array(["1", "0"], object), 9).tolist() == [True, False]
