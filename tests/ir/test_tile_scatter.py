"""Stores at indices from data, stores that combine, and casts of bits: text, rules, meaning."""

from __future__ import annotations

import numpy as np
import pytest

from rooftile.core.errors import InvalidInput, InvalidIR
from rooftile.ir.tile.cost import cost
from rooftile.ir.tile.interpret import run
from rooftile.ir.tile.text import parse, to_text
from rooftile.ir.tile.verify import verify

HEAD = """kernel k
  memory I: i64[6]
  memory U: f32[6]
  memory Y: f32[4]
  whole i<6, j<4
"""
TEXT = HEAD + "  Y[j] := 1.0\n  Y[@I[i]] := U[i] combine add\n"


def test_text_and_meaning() -> None:
    kernel = verify(parse(TEXT))
    assert to_text(kernel) == TEXT
    indices = np.array([0, 3, 3, 0, 1, 3])
    updates = np.arange(6, dtype=np.float32)
    found = run(kernel, {"I": indices, "U": updates})["Y"]
    assert found.tolist() == [4.0, 5.0, 1.0, 9.0]
    assert cost(kernel).flops == {"f32": 6}
    indices[2] = 4
    with pytest.raises(InvalidInput, match=r"index 4 into Y is outside 0\.\.3"):
        run(kernel, {"I": indices, "U": updates})


def test_the_last_of_several_stores_stays() -> None:
    kernel = verify(parse(TEXT.replace(" combine add", "")))
    arrays = {"I": np.array([2, 2, 2, 0, 0, 2]), "U": np.arange(6.0)}
    assert run(kernel, arrays)["Y"].tolist() == [4.0, 1.0, 5.0, 1.0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("Y[@U[i]] := 1.0", "store Y: an index tile of f32; cast it to i64"),
        ("Y[@I[i]] := U[i] combine xor", "no combination xor; add, mul, max or min"),
        ("Y[@I[i]] := Y[j]", "the tile spans j, which no index names"),
        ("Y[@I[i]] := add(U[i], Y[1])", "is scattered reads the buffer it is written to"),
        ("Y[j] := bitcast(I[j], f32)", "bitcast of i64 to f32: the sizes differ"),
    ],
)
def test_rules(line: str, message: str) -> None:
    with pytest.raises(InvalidIR) as caught:
        verify(parse(f"{HEAD}  {line}\n"))
    assert message in str(caught.value)


def test_bitcast() -> None:
    text = "kernel k\n  memory X: f32[3]\n  memory Y: i32[3]\n  whole i<3\n"
    kernel = verify(parse(f"{text}  Y[i] := bitcast(X[i], i32)\n"))
    assert "bitcast(X[i], i32)" in to_text(kernel)
    x = np.array([1.0, -2.5, np.nan], np.float32)
    np.testing.assert_array_equal(run(kernel, {"X": x})["Y"], x.view(np.int32))
