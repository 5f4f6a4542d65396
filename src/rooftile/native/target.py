"""Which machine code is written: triple, CPU, features, and what they mean for vectors."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache

from rooftile.core.errors import InvalidOption
from rooftile.native.host_cpu import described_host

FORCE = "ROOFTILE_TARGET"
"""Environment variable that lowers the instruction set of an x86-64 host."""

_X86_64_V2 = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
_X86_64_V3 = (*_X86_64_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_FORCED = {"avx2": ("x86-64-v3", _X86_64_V3), "sse4.2": ("x86-64-v2", _X86_64_V2)}
_CROSS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "aarch64-linux": ("aarch64-unknown-linux-gnu", "generic", ("neon",)),
    "aarch64-macos": ("arm64-apple-macosx12.0.0", "apple-m1", ("neon",)),
    "x86-64-v2": ("x86_64-unknown-linux-gnu", *_FORCED["sse4.2"]),
    "x86-64-v3": ("x86_64-unknown-linux-gnu", *_FORCED["avx2"]),
}


@dataclass(frozen=True)
class Target:
    """A machine that LLVM writes code for.

    `features` is LLVM's list (`+avx2,-avx512f`): ask `has`, not `in`. `vector_bytes` is the width
    of one vector register and `registers` their number.
    """

    triple: str
    cpu: str
    features: str
    vector_bytes: int
    registers: int

    def has(self, feature: str) -> bool:
        """Whether a feature, in LLVM's spelling (`avx512vnni`), is switched on."""
        return f"+{feature}" in self.features.split(",")

    @property
    def arch(self) -> str:
        """The first part of the triple, with arm64 spelled aarch64."""
        arch = self.triple.split("-", 1)[0]
        return {"arm64": "aarch64", "amd64": "x86_64"}.get(arch, arch)

    @property
    def isa(self) -> str:
        """The widest vector extension: avx512, avx2, sse4.2, neon, or the architecture."""
        if self.arch == "x86_64":
            return {64: "avx512", 32: "avx2"}.get(self.vector_bytes, "sse4.2")
        return "neon" if self.arch == "aarch64" else self.arch

    @property
    def has_fma(self) -> bool:
        """Whether `llvm.fma` is an instruction; without one it becomes a call of libm."""
        return self.arch == "aarch64" or self.has("fma") or self.has("avx512f")

    @property
    def has_half(self) -> bool:
        """Whether f16 converts from and to f32 in instructions; else LLVM calls a helper that
        this process may lack."""
        return self.arch == "aarch64" or self.has("f16c") or self.has("avx512f")


def make_target(triple: str, cpu: str, features: str) -> Target:
    """A target with its vector width and register count read from the features."""
    enabled = set(features.split(","))
    if {"+avx512f", "+avx512bw", "+avx512dq", "+avx512vl"} <= enabled:
        return Target(triple, cpu, features, 64, 32)
    if triple.startswith(("x86_64", "amd64")):
        wide = {"+avx2", "+fma"} <= enabled
        return Target(triple, cpu, features, 32 if wide else 16, 16)
    return Target(triple, cpu, features, 16, 32)


def host_target() -> Target:
    """The target of this process, lowered by ROOFTILE_TARGET where that is set.

    InvalidOption for a value that is unknown or that this host cannot run.
    """
    return _host_target(os.environ.get(FORCE, ""))


def cross_target(name: str) -> Target:
    """A named target to write objects for; InvalidOption lists the names."""
    if name not in _CROSS:
        raise InvalidOption(f"no target is called {name!r}; there are {', '.join(sorted(_CROSS))}")
    triple, cpu, features = _CROSS[name]
    return make_target(triple, cpu, _switch_on(features))


@lru_cache(maxsize=8)
def _host_target(forced: str) -> Target:
    triple, name, features = described_host()
    host = make_target(triple, name, features)
    if forced in ("", "native"):
        return host
    if forced not in _FORCED:
        raise InvalidOption(f"{FORCE}={forced} is not known; set it to avx2 or sse4.2, or unset it")
    cpu, needed = _FORCED[forced]
    missing = [feature for feature in needed if not host.has(feature)]
    if missing:
        raise InvalidOption(
            f"{FORCE}={forced} cannot run on this {host.arch} CPU ({host.cpu}), which lacks "
            f"{', '.join(missing)}; unset {FORCE}"
        )
    return make_target(triple, cpu, _switch_on(needed))


def _switch_on(features: tuple[str, ...]) -> str:
    return ",".join(f"+{feature}" for feature in features)
