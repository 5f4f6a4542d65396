"""The CPU's code generator: tile programs as LLVM text, linked into one native program."""

from rooftile.codegen.llvm.build import Built, LoopWork, Plan, Work, build
from rooftile.codegen.llvm.kernel import KernelText, emit

__all__ = ["Built", "KernelText", "LoopWork", "Plan", "Work", "build", "emit"]
