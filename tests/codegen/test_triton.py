"""Triton source of the proof kernels: golden texts, machine code for sm_90, refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import kernels
import pytest
import triton_texts as texts

from rooftile.codegen.triton import compile_sm90, emit
from rooftile.core.errors import InvalidInput, NotLowered
from rooftile.ir.tile import Hints, Kernel
from rooftile.ir.tile.text import parse
from rooftile.ir.tile.verify import verify

FIVE = {
    "matmul_gelu": kernels.matmul_gelu(384, 768, 3072, 64, 128, 32, "bf16"),
    "softmax": kernels.softmax(384, 1000, 4),
    "depthwise": kernels.depthwise(56, 56, 128, 2, 8, 64),
    "attention": kernels.attention(12, 512, 64, 32, "bf16"),
    "attention_online": kernels.attention_online(12, 64, 64, 64, "bf16"),
}


def _kernel(text: str) -> Kernel:
    return verify(parse(text))


@pytest.mark.parametrize("name", FIVE)
def test_golden(name: str, golden: Callable[[str, str], None]) -> None:
    hints = Hints(swizzle=8 if name == "matmul_gelu" else 0)
    golden(f"triton_{name}.py", emit(FIVE[name], hints).text)


@pytest.mark.parametrize("name", FIVE)
def test_compiles_for_sm90(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")
    binary = compile_sm90(emit(FIVE[name], Hints(stages=3)))
    assert binary.name == name
    assert binary.cubin[:4] == b"\x7fELF"
    assert ".target sm_90" in binary.ptx
    if name in ("matmul_gelu", "attention_online"):
        assert "wgmma" in binary.ptx
        assert binary.shared > 0


@pytest.mark.parametrize("name", [name for name in vars(texts) if name.isupper()])
def test_corners_compile_for_sm90(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")
    assert compile_sm90(emit(_kernel(getattr(texts, name)))).cubin


def test_libdevice_and_every_scalar_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")
    kernel = _kernel("""
kernel scalars
  memory X: bf16[64]
  memory D: f64[64]
  memory Y: bf16[64]
  memory E: f64[64]
  grid i<64 tile 32
  x = tanh(round(X[i]))
  y = div(exp(x), add(abs(X[i]), 0.5:bf16))
  Y[i] := where(lt(x, 0.0:bf16), neg(y), floor(y))
  E[i] := max(erf(D[i]), min(log(sqrt(D[i])), 0.1:f64))
""")
    source = emit(kernel)
    assert "from triton.language.extra import libdevice" in source.text
    assert "libdevice.tanh(" in source.text
    assert compile_sm90(source).cubin


def test_launch_facts() -> None:
    source = emit(FIVE["attention_online"], Hints(warps=8, stages=3))
    assert source.args == ("Q", "K", "V", "O", "S")
    assert source.signature == {**dict.fromkeys("QKVO", "*bf16"), "S": "i32"}
    assert source.options == {"num_warps": 8, "num_stages": 3}
    assert source.grid({"S": 65}) == (24,)
    assert source.grid({"S": 1}) == (12,)
    with pytest.raises(InvalidInput, match="buffer Q has 3840000000 elements"):
        source.grid({"S": 5_000_000})


def test_wide_offsets_only_where_needed() -> None:
    text = "kernel k\n  memory X: f32[{n}]\n  grid i<{n} tile 64\n  X[i] := 1.0\n"
    assert "int64" not in emit(_kernel(text.format(n=2**31 - 64))).text
    assert "tl.cast(" not in emit(_kernel(text.format(n=2**31))).text
    rows = (
        "kernel k\n  memory X: f32[{n},64]\n  whole c<64\n  grid i<{n} tile 64\n  X[i, c] := 1.0\n"
    )
    assert "tl.cast(i[:, None], tl.int64) * 64" in emit(_kernel(rows.format(n=2**25))).text


def test_words_of_python_are_renamed() -> None:
    kernel = _kernel("""
kernel lambda
  memory tl: f32[4]
  memory max: f32[4]
  whole in<4
  tl_1 = tl[in]
  max[in] := tl_1
""")
    source = emit(kernel)
    assert source.name == "lambda_1"
    assert source.args == ("tl_1", "max_1")
    compile(source.text, "kernel", "exec")


def test_symbol_of_one_value_is_not_compiled_apart() -> None:
    text = emit(FIVE["attention_online"]).text
    assert '@triton.jit(do_not_specialize=["S"])' in text


def test_barrier_between_store_and_load() -> None:
    kernel = _kernel("""
kernel k
  memory X: f32[8]
  memory Y: f32[8]
  whole c<8
  Y[c] := X[c]
  X[c] := Y[c]
""")
    assert emit(kernel).text.count("tl.debug_barrier()") == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "scratch T: f32[4]\n  whole c<4\n  T[c] := 1.0",
            "buffer T: Triton has no explicit scratch; schedule without staging",
        ),
        (
            "memory X: f32[S]\n  whole c<S\n  X[c] := 1.0",
            "axis c is whole and its extent S is symbolic; Triton needs a tile size",
        ),
        (
            "memory X: f32[4,4,4]\n  memory W: f32[4,4]\n  memory Y: f32[4]\n"
            "  whole a<4, b<4, c<4, d<4\n"
            "  y = dot(X[a, b, c], W[c, d], over c)\n  Y[d] := sum(sum(y over a) over b)",
            "sum over b, one of the matrix dims a b",
        ),
        (
            "memory X: f32[4,4,4]\n  memory W: f32[4,4]\n  memory Y: f32[4,4]\n"
            "  whole a<4, b<4, c<4, d<4\n"
            "  y = dot(X[a, b, c], W[c, d], over c)\n"
            "  Y[a, b] := dot(X[a, c, d], X[b, c, d], over c d)\n",
            "axis d is in two groups of matrix dims",
        ),
        (
            "memory X: f32[4,4,4]\n  memory W: f32[4,4]\n  memory Y: f32[4,4,4]\n"
            "  whole a<4, b<4, c<4, d<4, e<4\n"
            "  y = dot(X[a, b, c], W[c, d], over c)\n"
            "  Y[e, b, d] := rename(y, a -> e)\n",
            "rename of a, one of several dims",
        ),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(NotLowered) as caught:
        emit(_kernel(f"kernel k\n  {text}\n"))
    assert message in str(caught.value)


def test_hints_change_no_other_field() -> None:
    source = emit(FIVE["softmax"])
    assert replace(source, hints=Hints(warps=1)).options["num_warps"] == 1
