"""Windows, Fourier transforms and mel weights, compiled; steps of optimisers against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import defs
from onnx.reference import ReferenceEvaluator
from onnx_models import Const, compiled, floats, ints, one_node

import rooftile
from rooftile.core.errors import InvalidModel, UnsupportedOp
from rooftile.frontends.onnx import read


@pytest.mark.parametrize("op", ["HannWindow", "HammingWindow", "BlackmanWindow"])
@pytest.mark.parametrize("periodic", [0, 1])
def test_windows(op: str, periodic: int) -> None:
    model, _ = one_node(op, Const(np.array(10)), periodic=periodic)
    (found,) = rooftile.InferenceSession(model.SerializeToString()).run(None, {})
    count = 10 if periodic else 9
    angle = 2 * np.pi * np.arange(10) / count
    wanted = {
        "HannWindow": 0.5 - 0.5 * np.cos(angle),
        "HammingWindow": 25 / 46 - 21 / 46 * np.cos(angle),
        "BlackmanWindow": 0.42 - 0.5 * np.cos(angle) + 0.08 * np.cos(2 * angle),
    }[op]
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    with pytest.raises(InvalidModel, match="size -1 is not the length of a window"):
        read(one_node(op, Const(np.array(-1)))[0])


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("inverse", [0, 1])
@pytest.mark.parametrize("length", [5, 8, 11])
def test_dft_cuts_and_pads(parts: int, inverse: int, length: int) -> None:
    x = floats(2, 8, 3, parts)
    model, feeds = one_node("DFT", x, ints(length), ints(1), opset=20, inverse=inverse)
    (found,) = rooftile.InferenceSession(model.SerializeToString()).run(None, feeds)
    complex_x = x[..., 0] + (1j * x[..., 1] if parts == 2 else 0)
    wanted = (np.fft.ifft if inverse else np.fft.fft)(complex_x, length, axis=1)
    np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], wanted, atol=1e-5)


@pytest.mark.parametrize("length", [7, 8])
def test_real_signals_and_half_spectra(length: int) -> None:
    x = floats(2, length, 1)
    model, feeds = one_node("DFT", x, None, ints(1), opset=20, onesided=1)
    (half,) = rooftile.InferenceSession(model.SerializeToString()).run(None, feeds)
    wanted = np.fft.rfft(x[..., 0])
    np.testing.assert_allclose(half[..., 0] + 1j * half[..., 1], wanted, atol=1e-5)
    back = one_node("DFT", half, ints(length), ints(1), opset=20, onesided=1, inverse=1)
    (found,) = rooftile.InferenceSession(back[0].SerializeToString()).run(None, back[1])
    np.testing.assert_allclose(found, x, atol=1e-5)


def test_dft_refuses() -> None:
    with pytest.raises(InvalidModel, match="the last dim holds 1 or 2 parts"):
        read(one_node("DFT", floats(2, 8, 3), None, ints(1), opset=20)[0])
    with pytest.raises(UnsupportedOp, match="a transform of 100000 points"):
        read(one_node("DFT", floats(1, 100000, 1), opset=17)[0])


def test_stft() -> None:
    signal = floats(2, 64, 1)
    compiled("STFT", signal, Const(np.array(8)), floats(16), atol=1e-4)
    compiled("STFT", signal, Const(np.array(8)), None, Const(np.array(16)), onesided=0, atol=1e-4)
    with pytest.raises(InvalidModel, match="frame_step 0 or frame_length 16"):
        read(one_node("STFT", signal, Const(np.array(0)), floats(16))[0])


def test_mel_weights() -> None:
    arrays = [np.array(n) for n in (8, 64, 8192)] + [np.float32(100), np.float32(4000)]
    model, _ = one_node("MelWeightMatrix", *map(Const, arrays))
    (found,) = rooftile.InferenceSession(model.SerializeToString()).run(None, {})
    (wanted,) = ReferenceEvaluator(model).run(None, {})
    np.testing.assert_allclose(found, wanted, atol=1e-6)


@pytest.mark.parametrize("op", ["Adagrad", "Adam", "Momentum"])
@pytest.mark.parametrize("count", [0, 3])
def test_optimisers(op: str, count: int) -> None:
    domain = "ai.onnx.preview.training"
    kinds = len(defs.get_schema(op, domain=domain).attributes) and {"Adam": 4}.get(op, 3)
    tensors = [np.abs(floats(2, 3, seed=n)) for n in range(2 * kinds)]
    more = {"Momentum": {"alpha": 0.9, "beta": 0.5, "mode": "nesterov", "norm_coefficient": 0.1}}
    model, feeds = one_node(
        op,
        np.float32(0.1),
        np.array(count),
        *tensors,
        outputs=2 * (kinds - 1),
        domain=domain,
        **more.get(op, {"norm_coefficient": 0.1}),
    )
    found = rooftile.InferenceSession(model.SerializeToString()).run(None, feeds)
    wanted = ReferenceEvaluator(model).run(None, feeds)
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)
