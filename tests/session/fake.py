"""A pipeline that knows one model: y = x + 1. It stands in for the compiler."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import onnx
from onnx import TensorProto, helper

from rooftile.codegen.llvm.entry import entry_text
from rooftile.core.journal import Journal
from rooftile.core.options import CompileOptions
from rooftile.core.symbolic import Symbols
from rooftile.ir.program import Arg, Buffer, KernelFacts, Launch, Port, Program
from rooftile.native import assemble, host_target, link
from rooftile.runtime import Executable

KERNEL = """
define i32 @increment(ptr %x, ptr %y) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr float, ptr %x, i64 %i
  %q = getelementptr float, ptr %y, i64 %i
  %a = load float, ptr %p
  %b = fadd float %a, 1.0
  store float %b, ptr %q
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, {count}
  br i1 %more, label %loop, label %done
done:
  ret i32 0
}}
"""


def model(shape: list[int | str | None]) -> onnx.ModelProto:
    """`y = x + one`, `same = y`; the weight is listed as an input too, as old files do."""
    x, one, y, same = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
        for name, dims in [("x", shape), ("one", [1]), ("y", shape), ("same", shape)]
    )
    weight = helper.make_tensor("one", TensorProto.FLOAT, [1], [1.0])
    nodes = [
        helper.make_node("Add", ["x", "one"], ["y"], name="Add_0"),
        helper.make_node("Identity", ["y"], ["same"], name="Identity_1"),
    ]
    graph = helper.make_graph(nodes, "plus_one", [x, one], [y, same], [weight], doc_string="adds")
    made = helper.make_model(
        graph, producer_name="tests", opset_imports=[helper.make_opsetid("", 17)]
    )
    made.model_version = 3
    helper.set_model_props(made, {"stage": "trial"})
    return made


def program(shape: tuple[int, ...]) -> Program:
    """The program of the model for one shape of `x`."""
    nbytes = 4 * math.prod(shape)
    facts = KernelFacts(("Add_0",), ("add",), "f32", nbytes // 4, nbytes, nbytes, nbytes, 1e-6)
    return Program(
        "plus_one",
        (Port("x", "x", shape, "f32"),),
        (Port("y", "y", shape, "f32"), Port("same", "y", shape, "f32")),
        (Buffer("x", nbytes, "input"), Buffer("y", nbytes, "output")),
        (Launch("inc", (Arg("x"), Arg("y")), facts),),
    )


@dataclass
class Compilation:
    """What the pipeline gives, as far as sessions use it."""

    executable: Executable
    template: None = None
    graph: str = "graph"


@dataclass
class Pipeline:
    """The stand-in; it counts what it is asked."""

    calls: list[tuple[dict[str, tuple[int, ...]], CompileOptions]] = field(default_factory=list)

    def compile_model(
        self,
        model: Any,
        shapes: Mapping[str, tuple[int, ...]],
        options: CompileOptions,
        journal: Journal,
        symbols: Symbols | None = None,
    ) -> Compilation:
        assert model is not None
        self.calls.append((dict(shapes), options))
        made = program(shapes["x"])
        names = {"inc": "increment"}
        texts = [KERNEL.format(count=math.prod(shapes["x"])), entry_text(made, names)]
        journal.add("fuse", ("Add_0", "Identity_1"), "taken", "same map", bytes_saved=8)
        objects = [assemble(text, host_target()) for text in texts]
        return Compilation(Executable(made, link(objects), names, b""))

    def module(self) -> ModuleType:
        """It as the module `rooftile.pipeline`."""
        module = ModuleType("rooftile.pipeline")
        module.compile_model = self.compile_model  # type: ignore[attr-defined]
        return module
