"""Text to object or assembly, and LLVM's refusals as errors that quote the line."""

from __future__ import annotations

import pytest

from rooftile.core.errors import InvalidOption, NativeError
from rooftile.native import Target, assemble, assembly, cross_target, host_target

ADD = """define <4 x float> @add(<4 x float> %a, <4 x float> %b) {
  %c = fadd <4 x float> %a, %b
  ret <4 x float> %c
}
"""


@pytest.mark.parametrize(
    ("name", "magic", "instruction"),
    [
        ("aarch64-linux", b"\x7fELF", "fadd"),
        ("aarch64-macos", b"\xcf\xfa\xed\xfe", "fadd"),
        ("x86-64-v2", b"\x7fELF", "addps"),
        ("x86-64-v3", b"\x7fELF", "vaddps"),
    ],
)
def test_objects_of_named_targets(name: str, magic: bytes, instruction: str) -> None:
    target = cross_target(name)
    assert assemble(ADD, target).startswith(magic)
    assert f"\t{instruction}" in assembly(ADD, target)


def test_the_same_text_gives_the_same_object() -> None:
    assert assemble(ADD, host_target()) == assemble(ADD, host_target())


def test_a_parse_error_quotes_the_line() -> None:
    text = "define i32 @f() {\n  %x = frobnicate i32 1\n  ret i32 %x\n}\n"
    with pytest.raises(NativeError, match=r"line 2 of a module: expected instruction opcode") as e:
        assemble(text, host_target())
    assert "%x = frobnicate i32 1" in str(e.value)


def test_an_unfinished_text_says_so() -> None:
    with pytest.raises(NativeError, match=r"could not read line \d+ of a module"):
        assemble("define i32 @f() {\n", host_target())


def test_a_broken_module_names_the_instruction() -> None:
    text = "define i32 @f() {\n  %a = add i32 %b, 1\n  %b = add i32 1, 1\n  ret i32 %a\n}\n"
    with pytest.raises(NativeError, match=r"does not dominate all uses") as e:
        assembly(text, host_target())
    assert "%b = add i32 1, 1" in str(e.value)


def test_a_level_out_of_range() -> None:
    with pytest.raises(InvalidOption, match=r"level 4 is not one of 0, 1, 2, 3"):
        assemble(ADD, host_target(), level=4)


def test_a_triple_that_llvm_does_not_know() -> None:
    with pytest.raises(NativeError, match=r"no code generator for z80-none-none"):
        assemble(ADD, Target("z80-none-none", "", "", 16, 16))


def test_an_error_without_a_place_is_passed_on() -> None:
    from rooftile.native.assemble import _explain_parse

    assert _explain_parse("", "LLVM broke\n") == "LLVM could not read a module: LLVM broke"
