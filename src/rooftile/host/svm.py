"""SVMClassifier of ai.onnx.ml: one decision for each pair of classes, votes, and probabilities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from rooftile.core.errors import InvalidInput
from rooftile.host.registry import Kinds, body

Array = npt.NDArray[Any]
MAX_CLASSES = 4096
_LEAST = 1e-7
"""Probabilities stay so far from 0 and 1."""


def _kinds(kinds: Sequence[str], attributes: Mapping[str, Any]) -> Kinds:
    return ("string" if attributes.get("classlabels_strings") else "tensor", "tensor")


@body("SVMClassifier", domain="ai.onnx.ml", gives=_kinds, why="its votes take turns")
def svm_classifier(
    x: Array,
    coefficients: Sequence[float] = (),
    rho: Sequence[float] = (),
    support_vectors: Sequence[float] = (),
    vectors_per_class: Sequence[int] = (),
    kernel_type: str = "LINEAR",
    kernel_params: Sequence[float] = (),
    prob_a: Sequence[float] = (),
    prob_b: Sequence[float] = (),
    post_transform: str = "NONE",
    classlabels_ints: Sequence[int] = (),
    classlabels_strings: Sequence[str] = (),
) -> tuple[Array, Array]:
    """The label of each row of x [batch, features], and scores as onnxruntime gives them.

    With support vectors there is a score for each pair of classes (for two classes: both signs),
    or a probability for each class where `prob_a` is given; without, a linear form for each class.
    """
    labels = _labels(classlabels_ints, classlabels_strings)
    rows = np.atleast_2d(x).astype(np.float64)
    if rows.ndim != 2 or not 0 < len(labels) <= MAX_CLASSES:
        raise InvalidInput(f"x {list(x.shape)} or {len(labels)} labels do not fit")
    if not sum(vectors_per_class):
        weights = _sized("coefficients", coefficients, (len(labels), rows.shape[1]))
        scores = rows @ weights.T + _sized("rho", rho[:1], (1,))
        return labels[_linear_choice(scores, weights)], _transformed(scores, post_transform)
    kernel = _kernel(rows, support_vectors, vectors_per_class, kernel_type, kernel_params)
    scores, votes = _decisions(kernel, coefficients, rho, vectors_per_class, len(labels))
    chosen = labels[votes.argmax(-1)]
    if prob_a:
        scores = _probabilities(scores, len(labels), prob_a, prob_b)
    elif len(labels) == 2:
        return chosen, _both_signs(scores, post_transform)
    return chosen, _transformed(scores, post_transform)


def _labels(ints: Sequence[int], strings: Sequence[str]) -> Array:
    if not strings:
        return np.array(ints, np.int64)
    found = np.empty(len(strings), object)
    found[:] = strings
    return found


def _sized(name: str, values: Sequence[float], shape: tuple[int, ...]) -> Array:
    if len(values) != int(np.prod(shape)):
        raise InvalidInput(f"{name} holds {len(values)} numbers, {list(shape)} are needed")
    return np.array(values, np.float64).reshape(shape)


def _kernel(
    rows: Array,
    support_vectors: Sequence[float],
    counts: Sequence[int],
    form: str,
    parameters: Sequence[float],
) -> Array:
    """The kernel of each row with each support vector: [batch, vectors]."""
    if min(counts) < 0:
        raise InvalidInput(f"vectors_per_class {list(counts)} has a negative count")
    vectors = _sized("support_vectors", support_vectors, (sum(counts), rows.shape[1]))
    gamma, offset, degree = (*parameters, 0.0, 0.0, 0.0)[:3]
    if form == "RBF":
        squares = (rows**2).sum(1)[:, None] + (vectors**2).sum(1) - 2 * rows @ vectors.T
        return np.asarray(np.exp(-gamma * squares))
    product = rows @ vectors.T
    forms: dict[str, Callable[[Array], Array]] = {
        "LINEAR": lambda plain: plain,
        "POLY": lambda plain: (gamma * plain + offset) ** degree,
        "SIGMOID": lambda plain: np.tanh(gamma * plain + offset),
    }
    if form not in forms:
        raise InvalidInput(f"kernel_type must be LINEAR, POLY, RBF or SIGMOID, not {form!r}")
    return forms[form](product)


def _decisions(
    kernel: Array,
    coefficients: Sequence[float],
    rho: Sequence[float],
    counts: Sequence[int],
    classes: int,
) -> tuple[Array, Array]:
    """A score for each pair of classes, and how many pairs each class wins: [batch, classes].

    Row `j - 1` of the coefficients holds those of class i < j against j, row `i` those of j.
    """
    pairs = list(combinations(range(classes), 2))
    if len(counts) != classes or len(rho) != len(pairs):
        raise InvalidInput(
            f"{len(counts)} counts of vectors and {len(rho)} numbers rho do not fit "
            f"{classes} classes"
        )
    table = _sized("coefficients", coefficients, (classes - 1, sum(counts)))
    ends = np.cumsum([0, *counts])
    parts = [slice(ends[number], ends[number + 1]) for number in range(classes)]
    scores = np.zeros((len(kernel), len(pairs)))
    votes = np.zeros((len(kernel), classes), np.int64)
    for number, (i, j) in enumerate(pairs):
        first = kernel[:, parts[i]] @ table[j - 1, parts[i]]
        second = kernel[:, parts[j]] @ table[i, parts[j]]
        scores[:, number] = first + second + rho[number]
        votes[:, i] += scores[:, number] > 0
        votes[:, j] += scores[:, number] <= 0
    return scores, votes


def _linear_choice(scores: Array, weights: Array) -> Array:
    """The class of the largest score; of two classes the second where that score is large."""
    best: Array = scores.argmax(-1)
    if scores.shape[-1] != 2:
        return best
    top = scores.max(-1)
    second = top >= 0.5 if np.all(weights >= 0) else top > 0
    return np.asarray(np.where(second, 1, best))


def _probabilities(scores: Array, classes: int, a: Sequence[float], b: Sequence[float]) -> Array:
    """[batch, classes] from the scores of pairs, by Platt's scaling and pairwise coupling."""
    pairs = list(combinations(range(classes), 2))
    if len(a) != len(pairs) or len(b) != len(pairs):
        raise InvalidInput(f"prob_a and prob_b must hold {len(pairs)} numbers each")
    scaled = scores * np.array(a, np.float64) + np.array(b, np.float64)
    each = np.clip(1 / (1 + np.exp(scaled)), _LEAST, 1 - _LEAST)
    table = np.zeros((len(scores), classes, classes))
    for number, (i, j) in enumerate(pairs):
        table[:, i, j], table[:, j, i] = each[:, number], 1 - each[:, number]
    return np.array([_coupled(row) for row in table]).reshape(len(scores), classes)


def _coupled(pairwise: Array) -> Array:
    """The probabilities p of classes that fit those of pairs best, as libsvm finds them.

    Minimises p Q p by turns (Wu, Lin, Weng: Probability estimates for multi-class classification
    by pairwise coupling, 2004, second method), until each gradient is within 0.005 / classes.
    """
    count = len(pairwise)
    q = -pairwise.T * pairwise
    np.fill_diagonal(q, (pairwise.T**2).sum(-1))
    p = np.full(count, 1 / count)
    for _ in range(max(100, count)):
        gradient = q @ p
        total = p @ gradient
        if np.abs(gradient - total).max() < 0.005 / count:
            break
        for t in range(count):
            change = (total - gradient[t]) / q[t, t]
            p[t] += change
            grown = total + change * (change * q[t, t] + 2 * gradient[t])
            total = grown / (1 + change) ** 2
            gradient = (gradient + change * q[t]) / (1 + change)
            p /= 1 + change
    return p


def _both_signs(scores: Array, transform: str) -> Array:
    """What onnxruntime makes of the one score of two classes."""
    score = scores[:, 0]
    if transform == "NONE":
        pair = [-score, score]
    elif transform == "LOGISTIC":
        pair = [_logistic(-score), _logistic(score)]
    else:
        pair = [1 - score, score]
    return np.stack(pair, -1).astype(np.float32)


def _logistic(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _transformed(scores: Array, transform: str) -> Array:
    if transform == "LOGISTIC":
        scores = _logistic(scores)
    elif transform in ("SOFTMAX", "SOFTMAX_ZERO"):
        top = scores.max(-1, keepdims=True, initial=-np.inf)
        powers = np.exp(scores - top)
        if transform == "SOFTMAX_ZERO":
            powers = np.where(abs(scores) > _LEAST, powers, scores * np.exp(-top))
        scores = powers / powers.sum(-1, keepdims=True)
    elif transform != "NONE":
        raise InvalidInput(f"post_transform {transform!r} is not NONE, LOGISTIC or SOFTMAX(_ZERO)")
    return scores.astype(np.float32)
