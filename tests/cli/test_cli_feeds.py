"""Inputs for models: files, random ones, open dims."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rooftile.cli.feeds import feeds_for, fitting
from rooftile.core.errors import InvalidInput
from rooftile.core.signature import Argument, Signature

BERT = Signature(
    (
        Argument("ids", ("batch", "length"), "tensor(int64)"),
        Argument("mask", ("batch", "length"), "tensor(bool)"),
        Argument("table", (0, None, 4), "tensor(float16)"),
        Argument("bias", (3,), "tensor(float)"),
    ),
    (),
)


def test_random_inputs_fit_and_repeat() -> None:
    feeds, notes = fitting(BERT, {"ids": (2, 5)}, {})
    assert {name: (array.shape, array.dtype.name) for name, array in feeds.items()} == {
        "ids": ((2, 5), "int64"),
        "mask": ((2, 5), "bool"),
        "table": ((1, 1, 4), "float16"),
        "bias": ((3,), "float32"),
    }
    assert set(feeds["ids"].reshape(-1)) == {0, 1}
    assert notes == ["input 'table': open dims taken as 1: 0, 1"]
    again, _ = fitting(BERT, {"ids": (2, 5)}, {})
    other, _ = fitting(BERT, {"ids": (2, 5)}, {}, seed=1)
    assert all(np.array_equal(feeds[name], again[name]) for name in feeds)
    assert not np.array_equal(feeds["bias"], other["bias"])


def test_a_symbol_that_nothing_tells_is_one() -> None:
    feeds, notes = fitting(BERT, {}, {"table": np.zeros((1, 1, 4), np.float16)})
    assert feeds["ids"].shape == (1, 1)
    assert "input 'ids': open dims taken as 1: batch, length" in notes
    assert not [line for line in notes if "table" in line]


def test_given_arrays_are_kept_and_bind_symbols() -> None:
    ids = np.full((3, 7), 9, np.int64)
    feeds, _ = fitting(BERT, {"table": (2, 2, 4)}, {"ids": ids})
    assert feeds["ids"] is ids
    assert feeds["mask"].shape == (3, 7)
    assert feeds["table"].shape == (2, 2, 4)


def test_refusals() -> None:
    with pytest.raises(InvalidInput, match="the model has no input 'idz'; it takes 'ids', 'mask'"):
        fitting(BERT, {"idz": (1,)}, {})
    words = Signature((Argument("words", (1,), "tensor(string)"),), ())
    with pytest.raises(InvalidInput, match=r"'words' is a tensor\(string\): no random one"):
        fitting(words, {}, {})


def test_files(tmp_path: Path, digits: Path) -> None:
    image, pair = tmp_path / "x.npy", tmp_path / "x.npz"
    array = np.ones((2, 1, 8, 8), np.float32)
    np.save(image, array)
    np.savez(pair, images=array * 2)
    assert feeds_for(digits, files=[("images", image)])[0]["images"].max() == 1
    assert feeds_for(digits, feed=pair)[0]["images"].max() == 2
    assert feeds_for(digits, feed=pair, files=[("images", image)])[0]["images"].max() == 1
    broken = tmp_path / "broken.npy"
    broken.write_bytes(b"no array")
    with pytest.raises(InvalidInput, match=r"broken\.npy cannot be read as an \.npz archive"):
        feeds_for(digits, feed=broken)
    with pytest.raises(InvalidInput, match=r"broken\.npy cannot be read as an \.npy array"):
        feeds_for(digits, files=[("images", broken)])
    with pytest.raises(InvalidInput, match="is a single array; give it by --input NAME="):
        feeds_for(digits, feed=image)
    broken.write_bytes(b"PK\x03\x04 no archive")
    with pytest.raises(InvalidInput, match=r"cannot be read as an \.npz archive"):
        feeds_for(digits, feed=broken)
    with pytest.raises(InvalidInput, match="is an archive; give it by --feed"):
        feeds_for(digits, files=[("images", pair)])
