"""The generated LLVM text: golden, the same each time, and with the loops that were meant."""

from __future__ import annotations

import re
from collections.abc import Callable

import kernels
import pytest
from llvm_host import agree, filled, made

from rooftile.codegen.llvm.kernel import emit
from rooftile.core.errors import NotLowered
from rooftile.ir.tile import Hints, Kernel
from rooftile.native.assemble import assembly
from rooftile.native.bounds import SWITCH
from rooftile.native.target import Target, cross_target, make_target

AVX512 = make_target(
    "x86_64-unknown-linux-gnu",
    "znver4",
    "+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+avx512f,+avx512bw,+avx512dq,+avx512vl",
)
TINY_DOT = """
kernel tiny_dot
  memory A: f32[2,3]
  memory B: f32[3,16]
  memory C: f32[2,16]
  whole m<2, n<16, k<3
  s = dot(A[m, k], B[k, n], over k)
  C[m, n] := max(s, 0.0)
"""
TINY_ROWS = """
kernel tiny_rows
  memory X: f32[S,4]
  memory I: i32[S]
  memory Y: bf16[S,4]
  whole n<4
  grid m<S point
  x = X[@I[m], n]
  Y[m, n] := cast(div(x, sum(x over n)), bf16)
"""


@pytest.fixture(autouse=True)
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The build whose text these tests read; `test_llvm_bounds.py` has the other."""
    monkeypatch.delenv(SWITCH, raising=False)


@pytest.mark.parametrize(("name", "text"), [("dot", TINY_DOT), ("rows", TINY_ROWS)])
def test_golden(name: str, text: str, golden: Callable[[str, str], None]) -> None:
    golden(f"llvm_{name}.ll", emit(made(text), AVX512).text)


def test_the_same_kernel_gives_the_same_text() -> None:
    for make in (
        lambda: kernels.attention_online(2, 8, 5, 6),
        lambda: kernels.depthwise(9, 9, 20, 4, 4, 16),
        lambda: made(TINY_ROWS),
    ):
        assert emit(make(), AVX512) == emit(make(), AVX512)


def loops(kernel: Kernel, target: Target, hints: Hints | None = None) -> list[list[str]]:
    """The instructions of each innermost loop in the assembly: from a label to a jump back."""
    lines = assembly(emit(kernel, target, hints).text, target).splitlines()
    place = {line[: line.index(":")]: at for at, line in enumerate(lines) if line.startswith(".L")}
    found = []
    for at, line in enumerate(lines):
        jump = re.match(r"\tj\w+\t(\.L\w+)", line)
        if jump and place.get(jump[1], at) < at:
            body = lines[place[jump[1]] : at]
            if not any(re.match(r"\tj\w+\t\.L", other) for other in body):
                found.append([other.strip() for other in body])
    return found


def count(body: list[str], word: str) -> int:
    return sum(word in line for line in body)


def test_matmul_keeps_its_register_tile() -> None:
    """12 rows of two vectors, four steps: 96 products a turn, nothing stored, nothing selected."""
    kernel = kernels.matmul_gelu(48, 64, 64, 48, 64, 64, layout="layout 1/32 0 1%32")
    hints = Hints(register_tile=(("m", 12), ("n", 32)))
    body = max(loops(kernel, AVX512, hints), key=lambda body: count(body, "vfmadd"))
    assert count(body, "vfmadd") == 96
    for word in ("cmov", "blend", "(%rsp)", "vmovups\t%zmm"):
        assert count(body, word) == 0, word


def test_convolution_and_depthwise_select_nothing_inside() -> None:
    conv = made("""
kernel conv
  memory X: f32[14,14,64]
  memory W: f32[3,3,64,64] layout 3/32 0 1 2 3%32
  memory Y: f32[14,14,64]
  whole h<14, w<14, n<64, kh<3, kw<3, c<64
  s = dot(X[h+kh-1, w+kw-1, c] pad 0.0, W[kh, kw, c, n], over kh kw c)
  Y[h, w, n] := max(s, 0.0)
""")
    hints = Hints(register_tile=(("n", 32), ("w", 14)))
    bodies = [b for b in loops(conv, AVX512, hints) if count(b, "vfmadd")]
    assert max(count(body, "vfmadd") for body in bodies) == 14 * 2 * 4
    depthwise = kernels.depthwise(14, 14, 64, 14, 14, 64)
    for body in bodies + [b for b in loops(depthwise, AVX512) if count(b, "vfmadd")]:
        assert count(body, "cmov") == count(body, "vpcmp") == count(body, "{%k") == 0


def test_no_fused_multiply_is_asked_of_a_target_without() -> None:
    for kernel in (kernels.matmul_gelu(5, 6, 20, 5, 20, 6), kernels.softmax(3, 20, 3)):
        assert "llvm.fma" not in emit(kernel, cross_target("x86-64-v2")).text
        assert "llvm.fma" in emit(kernel, cross_target("x86-64-v3")).text


def test_halves_ask_for_no_helper_of_a_target_without() -> None:
    kernel = kernels.softmax(3, 20, 3, "f16")
    assert "half" not in emit(kernel, cross_target("x86-64-v2")).text
    assert "half" in emit(kernel, cross_target("x86-64-v3")).text
    for name in ("x86-64-v2", "x86-64-v3", "aarch64-linux"):
        target = cross_target(name)
        listing = assembly(emit(kernel, target).text, target)
        assert not re.search(r"call.*hf2|bl\t.*hf2", listing), name


@pytest.mark.parametrize("name", ["entry", "fail", "code", "i", "v", "loop", "ret", "ptr", "float"])
def test_names_of_buffers_never_meet_those_of_the_generator(name: str) -> None:
    kernel = made(f"""
kernel names
  memory {name}: f32[9]
  memory at: i32[9]
  memory out: f32[9]
  whole n<9
  out[n] := {name}[@abs(min(at[n], 8:i32))]
""")
    arrays = filled(kernel)
    arrays["at"] = abs(arrays["at"]) % 9
    agree(kernel, arrays)


def test_what_has_no_form_is_named() -> None:
    symbolic = made(
        "kernel k\n  memory X: f32[S]\n  memory Y: f32[S]\n  whole i<S\n  Y[i] := X[i]\n"
    )
    with pytest.raises(NotLowered, match="k: axis i is symbolic and whole"):
        emit(symbolic, AVX512)
    scratch = made("""
kernel k
  memory Y: f32[S]
  scratch Z: f32[S]
  grid i<S tile 4
  Z[i] := 1.0:[i]
  Y[i] := Z[i]
""")
    with pytest.raises(NotLowered, match="k: scratch buffer Z is symbolic"):
        emit(scratch, AVX512)
    loop = made("""
kernel k
  memory X: f32[S]
  memory Y: f32[]
  for i<S carry a = 0.0
    next a = add(a, sum(X[i] over i))
  Y[] := a
""")
    with pytest.raises(NotLowered, match="k: axis i is symbolic and whole"):
        emit(loop, AVX512)


def test_the_text_names_its_symbols_and_scratch() -> None:
    found = emit(kernels.attention_online(2, 8, 5, 6), AVX512)
    assert (found.symbol, found.symbols) == ("attention_online", ("S",))
    assert found.scratch_bytes > 0 and found.scratch_bytes % 64 == 0
    assert found.text.startswith("define i32 @attention_online(ptr %Q, ptr %K, ptr %V, ptr %O, i64")


def test_a_conv_of_images_stored_by_channel_is_computed_along_the_channels() -> None:
    """Along a row, which the store would like, lanes lie inside and outside of the padding."""
    text = emit(
        made("""
kernel conv
  memory x0: f32[1,16,24,24]
  memory x1: f32[3,3,16,32]
  memory y0: f32[1,32,24,24]
  whole h<32, w<24, n<24, kh<3, kw<3, c<16
  y0[0, h, w, n] := dot(x0[0, c, kh+w-1, kw+n-1] pad 0.0, x1[kh, kw, c, h], over kh kw c)
"""),
        AVX512,
    ).text
    assert "llvm.fma.v16f32" in text
    assert "masked.load" not in text
