"""Targets: what features mean for vectors, and how the environment lowers them."""

from __future__ import annotations

import pytest

from rooftile.core.errors import InvalidOption
from rooftile.native import Target, cross_target, host_target
from rooftile.native import target as target_module
from rooftile.native.target import make_target

X86 = "x86_64-unknown-linux-gnu"
AVX512 = "+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx2,+fma"


@pytest.mark.parametrize(
    ("triple", "features", "width", "registers", "isa"),
    [
        (X86, AVX512, 64, 32, "avx512"),
        (X86, "+avx512f,+avx2,+fma", 32, 16, "avx2"),
        (X86, "+avx2,+fma,-avx512f", 32, 16, "avx2"),
        (X86, "+avx,-avx2", 16, 16, "sse4.2"),
        ("arm64-apple-macosx12.0.0", "+neon", 16, 32, "neon"),
        ("riscv64-unknown-linux-gnu", "+v", 16, 32, "riscv64"),
    ],
)
def test_vectors_follow_features(
    triple: str, features: str, width: int, registers: int, isa: str
) -> None:
    target = make_target(triple, "generic", features)
    assert (target.vector_bytes, target.registers, target.isa) == (width, registers, isa)


def test_has_does_not_take_a_feature_that_is_off() -> None:
    target = Target(X86, "generic", "-avx512vnni,+fma", 32, 16)
    assert target.has("fma")
    assert not target.has("avx512vnni")
    assert not target.has("avx512")
    assert target.has_fma


def test_host_target_is_stable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROOFTILE_TARGET", raising=False)
    assert host_target() == host_target()
    assert host_target().vector_bytes in (16, 32, 64)


def _pretend_host(monkeypatch: pytest.MonkeyPatch, features: str) -> None:
    described = (X86, "pretended", features)
    monkeypatch.setattr(target_module, "described_host", lambda: described)
    target_module._host_target.cache_clear()


@pytest.fixture(autouse=True)
def _forget_hosts() -> object:
    yield
    target_module._host_target.cache_clear()


V3 = ",".join(f"+{name}" for name in target_module._X86_64_V3)


@pytest.mark.parametrize(("name", "width"), [("avx2", 32), ("sse4.2", 16)])
def test_environment_lowers_the_host(
    monkeypatch: pytest.MonkeyPatch, name: str, width: int
) -> None:
    _pretend_host(monkeypatch, f"{AVX512},+avx512vnni,{V3}")
    monkeypatch.setenv("ROOFTILE_TARGET", name)
    target = host_target()
    assert (target.isa, target.vector_bytes, target.registers) == (name, width, 16)
    assert not target.has("avx512vnni")
    monkeypatch.setenv("ROOFTILE_TARGET", "native")
    assert host_target().isa == "avx512"


def test_unknown_forced_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOFTILE_TARGET", "mmx")
    with pytest.raises(InvalidOption, match=r"ROOFTILE_TARGET=mmx is not known; set it to avx2"):
        host_target()


def test_forced_target_that_the_host_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    _pretend_host(monkeypatch, V3.replace("+avx2", "-avx2"))
    monkeypatch.setenv("ROOFTILE_TARGET", "avx2")
    with pytest.raises(InvalidOption, match=r"cannot run on this x86_64 CPU .* lacks avx2; unset"):
        host_target()


def test_unknown_cross_target_lists_names() -> None:
    with pytest.raises(InvalidOption, match=r"no target is called 'z80'; there are aarch64-linux"):
        cross_target("z80")
