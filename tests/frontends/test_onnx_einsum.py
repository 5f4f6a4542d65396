"""Einsum against numpy, Det against numpy, both compiled."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import Const, floats, one_node

import rooftile
from rooftile.core.errors import InvalidModel, UnsupportedOp
from rooftile.frontends.onnx import read


def test_constants_that_make_a_scalar() -> None:
    a, b = floats(2, 3), floats(2, 3, seed=1)
    model, _ = one_node("Einsum", Const(a), Const(b), equation="ij,ij->")
    (found,) = rooftile.InferenceSession(model.SerializeToString()).run(None, {})
    np.testing.assert_allclose(found, np.sum(a * b), rtol=1e-6)
    model, _ = one_node("GatherND", Const(a), Const(np.array([1, -1])))
    (found,) = rooftile.InferenceSession(model.SerializeToString()).run(None, {})
    assert found == a[1, -1]


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("ba,bc", [(2, 3), (2, 4)]),
        ("bij,bjk->bik", [(5, 2, 3), (5, 3, 4)]),
        ("...ij,...jk->...ik", [(2, 3, 4), (1, 4, 5)]),
        ("...ij,...jk", [(2, 3, 4), (4, 5)]),
        ("ii->i", [(3, 3)]),
        ("ii", [(3, 3)]),
        ("iji->j", [(3, 2, 3)]),
        ("i,j->ij", [(3,), (4,)]),
        ("i,i->", [(3,), (3,)]),
        ("ij->ji", [(2, 3)]),
        ("abc,bd,cde->ae", [(2, 3, 4), (3, 5), (4, 5, 6)]),
        ("bhwc,hkc->bhwk", [(2, 3, 4, 5), (3, 6, 5)]),
        ("ab,ac->a", [(2, 3), (2, 4)]),
        (" i j , j -> i ", [(2, 3), (3,)]),
        ("xyz,xyz->yx", [(2, 3, 4), (2, 3, 4)]),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int16])
def test_einsum(equation: str, shapes: list[tuple[int, ...]], dtype: type) -> None:
    arrays = [(floats(*shape, seed=n) * 5).astype(dtype) for n, shape in enumerate(shapes)]
    model, feeds = one_node("Einsum", *arrays, equation=equation)
    (found,) = rooftile.InferenceSession(model.SerializeToString()).run(None, feeds)
    wanted = np.einsum(equation.replace(" ", ""), *arrays)
    assert (found.shape, found.dtype) == (wanted.shape, np.dtype(dtype))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("equation", "message"),
    [
        ("ij,jk,kl->il", "does not describe 2 inputs"),
        ("i1,jk->ik", "does not describe 2 inputs"),
        ("ijk,jk->ik", "term 'ijk' does not fit an input of rank 2"),
        ("ij,jk->ii", "its output 'ii' names a label twice"),
        ("ij,jk->iz", "its output names z, which no input has"),
        ("ij,ik->jk", "label i stands for dims of 2 and 3"),
        ("ii,jk->ik", "label i stands for dims of 2 and 3"),
    ],
)
def test_equations_that_do_not_fit(equation: str, message: str) -> None:
    model, _ = one_node("Einsum", floats(2, 3), floats(3, 4), equation=equation)
    with pytest.raises(InvalidModel) as caught:
        read(model)
    assert message in str(caught.value)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_determinant(size: int) -> None:
    x = floats(2, 3, size, size)
    model, feeds = one_node("Det", x)
    (found,) = rooftile.InferenceSession(model.SerializeToString()).run(None, feeds)
    np.testing.assert_allclose(found, np.linalg.det(x.astype(np.float64)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(6, 6), (3, 9, 9), (2, 2, 17, 17), (0, 8, 8)])
def test_determinants_of_large_matrices_are_computed_on_the_host(shape: tuple[int, ...]) -> None:
    model, feeds = one_node("Det", floats(*shape))
    with pytest.raises(UnsupportedOp, match=f"matrices of {shape[-1]} rows are factored"):
        read(model)
    session = rooftile.InferenceSession(model.SerializeToString())
    [found] = session.run(None, feeds)
    wanted = np.linalg.det(feeds["in0"].astype(np.float64))
    assert found.dtype == np.float32 and found.shape == shape[:-2]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert [entry.facts["op"] for entry in session.decisions if entry.stage == "host"] == ["Det"]
