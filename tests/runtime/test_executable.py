"""Running a linked program: values, inputs of all kinds, errors, threads, host calls."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sample_programs as samples

from rooftile.core.errors import InvalidInput, InvalidIR, InvalidModel, NativeError
from rooftile.ir.program import Arg, Launch
from rooftile.runtime import Executable, arrays

X, INDEX = samples.feeds()


@pytest.fixture(scope="module")
def linked() -> Executable:
    return samples.executable()


def check(outputs: list[np.ndarray], x: np.ndarray = X, index: int = 2) -> None:
    """Compare with numpy."""
    total = x.ravel() + samples.WEIGHTS[2:]
    wanted = [total[[index]], total, x.ravel(), samples.WEIGHTS, total.reshape(2, 2), total]
    assert [out.shape for out in outputs] == [want.shape for want in wanted]
    for out, want in zip(outputs, wanted, strict=True):
        assert out.dtype == np.float32
        np.testing.assert_array_equal(out, want)


def test_values(linked: Executable) -> None:
    first = linked.run([X, INDEX])
    check(first)
    second = linked.run([X + 1, np.array(0)])
    check(second, X + 1, 0)
    check(first)  # outputs are new arrays each time
    assert not any(np.shares_memory(a, b) for a in first for b in (*second, X))


def read_only(x: np.ndarray) -> np.ndarray:
    copied = x.copy()
    copied.flags.writeable = False
    return copied


def unaligned(x: np.ndarray) -> np.ndarray:
    raw = np.zeros(x.nbytes + 1, np.uint8)
    raw[1:] = x.ravel().view(np.uint8)
    return raw[1:].view(x.dtype).reshape(x.shape)


@pytest.mark.parametrize(
    "form",
    [
        lambda x: np.asfortranarray(x),
        lambda x: np.repeat(x, 2, axis=1)[:, ::2],
        lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
        lambda x: x.astype(">f4"),
        lambda x: memoryview(x),
        lambda x: [[np.float32(v) for v in row] for row in x],
        lambda x: np.broadcast_to(x, (2, 2)),
        read_only,
        unaligned,
    ],
)
def test_forms_of_an_input(linked: Executable, form: Any) -> None:
    check(linked.run([form(X), np.int64(1)]), index=1)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([X], "sample takes 2 inputs ('x', 'index'), got 1"),
        ([X.astype(np.float64), INDEX], "input 'x' holds float64, the model takes float32; pass "),
        ([X, np.array(1.0)], "input 'index' holds float64, the model takes int64"),
        ([X[:1], INDEX], "input 'x' has the shape [1, 2], this program was compiled for [2, 2]"),
        ([[[1], [2, 3]], INDEX], "input 'x' is a list, which numpy cannot read"),
        ([None, INDEX], "input 'x' is a NoneType, which numpy cannot read; pass an array"),
        ([[1.5, None], INDEX], "input 'x' is a list, which numpy cannot read"),
        ([X, 1.5], "input 'index' holds numbers, float64, that int64 cannot"),
        ([X.astype(object), INDEX], "input 'x' holds object"),
    ],
)
def test_refused_inputs(linked: Executable, inputs: list[Any], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        linked.run(inputs)
    assert message in str(caught.value)


@pytest.mark.parametrize("index", [4, -1, 2**40])
def test_kernel_codes_name_the_nodes(linked: Executable, index: int) -> None:
    with pytest.raises(InvalidInput, match=r"'Gather_1', 'Squeeze_2': an index is out of range"):
        linked.run([X, np.array(index)])
    check(linked.run([X, INDEX]))


def test_codes_without_origin(linked: Executable) -> None:
    program = replace(
        samples.PROGRAM,
        steps=(*samples.PROGRAM.steps[:2], Launch("gather", (Arg("s"), Arg("i"), Arg("p")))),
    )
    with pytest.raises(InvalidInput, match=r"kernel 'gather': an index .*step 2, code 1"):
        samples.executable(program).run([X, np.array(9)])
    assert str(linked.failure(77 << 8)) == f"sample failed with code {77 << 8}"


def test_threads_have_arenas_of_their_own(linked: Executable) -> None:
    def work(seed: int) -> None:
        x = np.full((2, 2), seed, np.float32)
        for _ in range(50):
            check(linked.run([x, np.array(seed % 4)]), x, seed % 4)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(16)))
    frame = linked.acquire()
    assert frame.arena.ctypes.data % 64 == 0
    assert linked.acquire() is not frame
    linked.release(frame)
    assert linked.acquire() is frame


def test_constants_in_place_or_copied() -> None:
    linked = samples.executable()
    again = Executable(linked.program, linked.objects, linked.functions, linked.constants)
    assert again.constants.ctypes.data == linked.constants.ctypes.data
    shifted = np.concatenate([np.zeros(4, np.uint8), linked.constants])[4:]
    moved = Executable(linked.program, linked.objects, linked.functions, shifted)
    assert moved.constants.ctypes.data % 64 == 0
    check(moved.run([X, INDEX]))


def test_parts_that_do_not_fit() -> None:
    linked = samples.executable()
    with pytest.raises(InvalidModel, match="sample needs 24 bytes of constants, got 3"):
        Executable(linked.program, linked.objects, linked.functions, b"abc")
    with pytest.raises(InvalidIR, match="arena of 64"):
        Executable(replace(linked.program, arena_bytes=64), (), {}, b"")
    with pytest.raises(NativeError, match="rooftile_entry"):
        Executable(linked.program, linked.objects[:1], linked.functions, linked.constants)


def test_addresses_agree_with_numpy() -> None:
    for array in (X, X[1:], INDEX, np.zeros((0, 3)), X.T):
        assert arrays.address(array) == arrays._address_by_interface(array) == array.ctypes.data


def test_addresses_without_the_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "_HEADER", arrays._HEADER + 8)
    assert arrays._choose() is arrays._address_by_interface
    monkeypatch.setattr("sys.implementation", type("other", (), {"name": "pypy"}))
    assert arrays._choose() is arrays._address_by_interface


def test_host_calls() -> None:
    linked = samples.executable(samples.SORTED, host_functions={"sort": samples.sort})
    picked, ordered = linked.run([X, np.array(1)])
    np.testing.assert_array_equal(ordered, [43, 32, 21, 10])
    assert picked == 32
    with pytest.raises(InvalidInput, match="Gather_1"):
        linked.run([X, np.array(7)])


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ({}, "calls the host function 'sort', which this version"),
        ({"sort": lambda *_, **__: []}, "'sort' gave 0 arrays, the program expects 1"),
        (
            {"sort": lambda *_, **__: [np.zeros(3)]},
            "gave float64[3] for 's', the program expects f32[4]",
        ),
    ],
)
def test_host_calls_that_fail(functions: Any, message: str) -> None:
    with pytest.raises(InvalidModel) as caught:
        samples.executable(samples.SORTED, host_functions=functions).run([X, INDEX])
    assert message in str(caught.value)
