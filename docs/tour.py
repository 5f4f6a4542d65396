"""The idea of rooftile in one file: a graph becomes fused native code and a dot under a roofline.

    python docs/tour.py

Plain Python, numpy and llvmlite; nothing of rooftile is imported. Read from top to bottom: each
part is the small sibling of the rooms of the project that its heading names. What is left out here
(tails, layouts, other ops, threads, trust in files) is what makes the project larger.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import llvmlite.binding as llvm
import numpy as np

Array = np.ndarray[Any, np.dtype[np.float32]]

# ---- Part 1: the graph (ir/graph). WHAT is computed. Values in SSA form: each is computed once.


@dataclass(frozen=True)
class Node:
    """`name = op(inputs)`. Ops: dot of [rows, inner] and [inner, columns]; and, element by element,
    add, mul, max of a [rows, columns] value and a vector [columns].
    """

    name: str
    op: str
    inputs: tuple[str, ...]


@dataclass(frozen=True)
class Graph:
    """Nodes in an order in which they can run; shapes of all values; the value that is wanted."""

    nodes: tuple[Node, ...]
    shapes: dict[str, tuple[int, ...]]
    output: str

    def readers(self, name: str) -> list[Node]:
        """Who needs a value."""
        return [node for node in self.nodes if name in node.inputs]


def layer(rows: int = 384, inner: int = 64, columns: int = 512) -> Graph:
    """A linear layer, a relu, and a scale and shift, as a model file might spell it: five nodes."""
    nodes = (
        Node("product", "dot", ("x", "w")),
        Node("biased", "add", ("product", "bias")),
        Node("active", "max", ("biased", "zero")),
        Node("scaled", "mul", ("active", "scale")),
        Node("y", "add", ("scaled", "shift")),
    )
    shapes: dict[str, tuple[int, ...]] = {"x": (rows, inner), "w": (inner, columns)}
    shapes |= dict.fromkeys(("bias", "zero", "scale", "shift"), (columns,))
    shapes |= {node.name: (rows, columns) for node in nodes}
    return Graph(nodes, shapes, "y")


# The truth is computed in float64 (ops: each op has such a reference). Engines are compared with
# it, not with one another.

REFERENCE: dict[str, Callable[[Any, Any], Any]] = {
    "dot": np.matmul,
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
}


def truth(graph: Graph, inputs: dict[str, Array]) -> Any:
    """The output in float64."""
    values: dict[str, Any] = {name: array.astype(np.float64) for name, array in inputs.items()}
    for node in graph.nodes:
        values[node.name] = REFERENCE[node.op](*(values[name] for name in node.inputs))
    return values[graph.output]


# ---- Part 2: the machine and the cost of work (machine, core/cost). A cost names no machine: it
# is operations and bytes. The machine turns it into a time, and that is the roofline:
#     time >= max(operations / peak, bytes / bandwidth)


@dataclass(frozen=True)
class Machine:
    """flop/s and bytes/s of one core, seconds of a kernel call, floats in a vector register."""

    peak: float
    bandwidth: float
    launch: float
    lanes: int


@dataclass(frozen=True)
class Cost:
    """Operations, and bytes read and written."""

    flops: int
    nbytes: int


@dataclass(frozen=True)
class Region:
    """Nodes that one kernel computes. What is between them never goes to memory."""

    nodes: tuple[Node, ...]

    @property
    def root(self) -> Node:
        """The last node: its value is the one that is stored."""
        return self.nodes[-1]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The values that are read from memory, in order."""
        made = {node.name for node in self.nodes}
        read = [name for node in self.nodes for name in node.inputs if name not in made]
        return tuple(dict.fromkeys(read))

    def __str__(self) -> str:
        return "+".join(node.op for node in self.nodes)


def cost(graph: Graph, region: Region) -> Cost:
    """What a kernel for the region has to do: inside values cost operations, but no bytes."""
    flops = 0
    for node in region.nodes:
        rows, columns = graph.shapes[node.name]
        inner = graph.shapes[node.inputs[0]][1] if node.op == "dot" else 0
        flops += 2 * rows * columns * inner if node.op == "dot" else rows * columns
    moved = (*region.inputs, region.root.name)
    return Cost(flops, sum(4 * int(np.prod(graph.shapes[name])) for name in moved))


def limit(machine: Machine, work: Cost) -> float:
    """The least time on this machine: the height of the roof at this work's intensity."""
    return max(work.flops / machine.peak, work.nbytes / machine.bandwidth)


def predicted(machine: Machine, work: Cost) -> float:
    """The time that the planner expects."""
    return machine.launch + limit(machine, work)


# ---- Part 3: fusion (plan/fusion). Two questions, never mixed: is it LEGAL (may one kernel compute
# both?), and does it PAY (does the predicted time fall?). Every answer goes into a ledger.


@dataclass(frozen=True)
class Verdict:
    """One line of the ledger."""

    producer: str
    consumer: str
    taken: bool
    reason: str


def refusal(graph: Graph, producer: Region, consumer: Region) -> str | None:
    """Why the two cannot be one kernel, or None where they can."""
    if len(graph.readers(producer.root.name)) > 1:
        return f"{producer.root.name} is needed elsewhere too"
    if any(node.op == "dot" for node in consumer.nodes):
        return "a dot needs its whole input rows, not one element"
    return None


def fuse(graph: Graph, machine: Machine, join: bool = True) -> tuple[list[Region], list[Verdict]]:
    """Regions in order, and the ledger. `join=False` gives each node a kernel of its own."""
    regions = [Region((node,)) for node in graph.nodes]
    ledger: list[Verdict] = []
    place = 1
    while join and place < len(regions):
        producer, consumer = regions[place - 1], regions[place]
        if producer.root.name not in consumer.inputs:
            place += 1
            continue
        reason = refusal(graph, producer, consumer)
        both = Region(producer.nodes + consumer.nodes)
        apart = sum(predicted(machine, cost(graph, region)) for region in (producer, consumer))
        gain = apart - predicted(machine, cost(graph, both))
        if reason is None and gain <= 0:
            reason = "the roof predicts no gain"
        names = (producer.root.name, consumer.root.name)
        if reason is None:
            ledger.append(Verdict(*names, True, f"saves {gain * 1e6:.1f} us"))
            regions[place - 1 : place + 1] = [both]
        else:
            ledger.append(Verdict(*names, False, reason))
            place += 1
    return regions, ledger


# ---- Part 4: tiles (lower, schedule, ir/tile). HOW. A kernel computes its output tile by tile: one
# of 6 rows by 2 vectors is kept in registers: 12 accumulators, each waiting for its own
# multiply-adds, so that the units are never idle. In words:
#
#     for m in rows by 6:  for n in columns by 2 vectors:
#         acc[6, 2] = 0
#         for k in inner:  acc[i, j] += x[m+i, k] * w[k, n+j]
#         y[m+i, n+j] = the fused elementwise nodes of acc[i, j]
#
# Without a dot the tile is loaded instead of accumulated. The rest is the same.

ROWS, VECTORS = 6, 2


def tile_program(region: Region) -> str:
    """The loop nest of a region as text, for people."""
    lines = [f"for m < rows tile {ROWS}, n < columns tile {VECTORS} vectors"]
    for node in region.nodes:
        left, right = node.inputs
        inner = f"sum over k of {left}[m, k] * {right}[k, n]"
        here = inner if node.op == "dot" else f"{node.op}({left}[m, n], {right}[n])"
        lines.append(f"  {node.name}[m, n] = {here}")
    return "\n".join([*lines, f"  store {region.root.name}[m, n]"])


# ---- Part 5: code (codegen/llvm). The tile program as LLVM text, which is quick to write and easy
# to read. Vector instructions come from vector types, no optimiser runs: the text is what we mean.


class Code:
    """Collects the lines of a function and makes up names."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.vector = f"<{lanes} x float>"
        self.lines: list[str] = []
        self.names = 0
        self.block = "entry"

    def new(self, instruction: str) -> str:
        """A line that gives a value; its name."""
        self.names += 1
        self.lines.append(f"  %v{self.names} = {instruction}")
        return f"%v{self.names}"

    def address(self, array: str, index: str) -> str:
        """Where an element of an array of floats is."""
        return self.new(f"getelementptr float, ptr %{array}, i64 {index}")

    def load(self, array: str, index: str) -> str:
        """A vector of consecutive elements."""
        return self.new(f"load {self.vector}, ptr {self.address(array, index)}, align 4")

    def broadcast(self, array: str, index: str) -> str:
        """One element in all lanes."""
        one = self.new(f"load float, ptr {self.address(array, index)}, align 4")
        first = self.new(f"insertelement {self.vector} poison, float {one}, i64 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return self.new(f"shufflevector {self.vector} {first}, {self.vector} poison, {zeros}")

    def index(self, base: str, stride: int, offset: str | int) -> str:
        """base * stride + offset."""
        return self.new(f"add i64 {self.new(f'mul i64 {base}, {stride}')}, {offset}")

    def loop(
        self,
        extent: int,
        step: int,
        carried: list[str],
        body: Callable[[str, list[str]], list[str]],
    ) -> list[str]:
        """for counter in 0..extent by step. `body` takes and gives the carried vectors, which live
        in registers: phi nodes say which block they come from. Gives them as they are at the end.
        """
        self.names += 1
        head, exit_, before = f"loop{self.names}", f"done{self.names}", self.block
        counter, follow = f"%i{self.names}", f"%j{self.names}"
        phis = [f"%c{self.names}_{place}" for place in range(len(carried))]
        self.lines += [f"  br label %{head}", f"{head}:"]
        start = len(self.lines)
        self.block = head
        after = body(counter, phis)
        # The body may have made blocks of its own: the back edge comes from the last of them.
        back = self.block
        self.lines[start:start] = [f"  {counter} = phi i64 [0, %{before}], [{follow}, %{back}]"] + [
            f"  {phi} = phi {self.vector} [{first}, %{before}], [{last}, %{back}]"
            for phi, first, last in zip(phis, carried, after, strict=True)
        ]
        self.lines.append(f"  {follow} = add i64 {counter}, {step}")
        more = self.new(f"icmp ult i64 {follow}, {extent}")
        self.lines += [f"  br i1 {more}, label %{head}, label %{exit_}", f"{exit_}:"]
        self.block = exit_
        return after


def apply(code: Code, op: str, a: str, b: str) -> str:
    """An elementwise op on two vectors."""
    if op == "max":
        greater = code.new(f"fcmp ogt {code.vector} {a}, {b}")
        return code.new(
            f"select <{code.lanes} x i1> {greater}, {code.vector} {a}, {code.vector} {b}"
        )
    return code.new(f"{ {'add': 'fadd', 'mul': 'fmul'}[op] } {code.vector} {a}, {b}")


PLACES = [(row, vector) for row in range(ROWS) for vector in range(VECTORS)]


def dot(code: Code, graph: Graph, node: Node, rows: list[str], columns: list[str]) -> list[str]:
    """The vectors of a tile of a dot: a loop over k with all of them in registers."""
    (left, right), lanes = node.inputs, code.lanes
    inner, width = graph.shapes[right]

    def step(k: str, sums: list[str]) -> list[str]:
        weights = [code.load(right, code.index(k, width, column)) for column in columns]
        factors = [code.broadcast(left, code.index(row, inner, k)) for row in rows]
        return [
            code.new(
                f"call {code.vector} @llvm.fma.v{lanes}f32({code.vector} {factors[row]}, "
                f"{code.vector} {weights[vector]}, {code.vector} {total})"
            )
            for total, (row, vector) in zip(sums, PLACES, strict=True)
        ]

    return code.loop(inner, 1, ["zeroinitializer"] * len(PLACES), step)


def emit(graph: Graph, region: Region, lanes: int) -> str:
    """The LLVM text of `void @kernel(ptr inputs..., ptr output)` for a region."""
    rows, columns = graph.shapes[region.root.name]
    width = VECTORS * lanes
    if rows % ROWS or columns % width:
        raise ValueError(f"this tour has no tails: rows by {ROWS}, columns by {width}")
    code = Code(lanes)

    def tile(m: str, n: str, _: list[str]) -> list[str]:
        row_of = [code.new(f"add i64 {m}, {row}") for row in range(ROWS)]
        column_of = [code.new(f"add i64 {n}, {v * lanes}") for v in range(VECTORS)]
        places = [code.index(row_of[row], columns, column_of[v]) for row, v in PLACES]
        first, rest = region.nodes[0], region.nodes[1:]
        if first.op == "dot":
            values = dot(code, graph, first, row_of, column_of)
        else:
            values = [code.load(first.inputs[0], place) for place in places]
            rest = region.nodes
        for node in rest:  # the fused nodes, on values that are still in registers
            other = [code.load(node.inputs[1], column) for column in column_of]
            values = [
                apply(code, node.op, value, other[vector])
                for value, (_, vector) in zip(values, PLACES, strict=True)
            ]
        for value, place in zip(values, places, strict=True):
            at = code.address("out", place)
            code.lines.append(f"  store {code.vector} {value}, ptr {at}, align 4")
        return []

    code.loop(rows, ROWS, [], lambda m, _: code.loop(columns, width, [], partial(tile, m)))
    arguments = ", ".join(f"ptr %{name}" for name in (*region.inputs, "out"))
    declared = f"declare {code.vector} @llvm.fma.v{lanes}f32({', '.join([code.vector] * 3)})"
    body = "\n".join(code.lines)
    return f"{declared}\n\ndefine void @kernel({arguments}) {{\nentry:\n{body}\n  ret void\n}}\n"


# ---- Part 6: machine code (native, runtime). LLVM assembles the text into this process; a kernel
# is then a C function that takes pointers.


def host() -> tuple[llvm.TargetMachine, int]:
    """LLVM's code generator for this CPU, and the floats in its widest vector."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    lanes = 16 if features.get("avx512f") else 8 if features.get("avx2") else 4
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features.flatten(), opt=1
    )
    return machine, lanes


class Kernel:
    """Machine code made of LLVM text; call it with arrays."""

    def __init__(self, text: str, arity: int) -> None:
        module = llvm.parse_assembly(text)
        module.verify()
        self._engine = llvm.create_mcjit_compiler(module, host()[0])
        self._engine.finalize_object()
        pointers = [ctypes.c_void_p] * arity
        address = self._engine.get_function_address("kernel")
        self._function = ctypes.CFUNCTYPE(None, *pointers)(address)

    def bind(self, arrays: list[Array]) -> Callable[[], None]:
        """The call on these arrays."""
        return partial(self._function, *(ctypes.c_void_p(array.ctypes.data) for array in arrays))


@dataclass(frozen=True)
class Program:
    """Kernels in order with the arrays that they read and write (ir/program)."""

    graph: Graph
    regions: list[Region]
    kernels: list[Kernel]
    values: dict[str, Array]

    def calls(self) -> Iterator[Callable[[], None]]:
        """Each kernel as a function without arguments."""
        for region, kernel in zip(self.regions, self.kernels, strict=True):
            yield kernel.bind([self.values[name] for name in (*region.inputs, region.root.name)])

    def run(self) -> Array:
        """The output."""
        for call in self.calls():
            call()
        return self.values[self.graph.output]


def build(graph: Graph, regions: list[Region], inputs: dict[str, Array], lanes: int) -> Program:
    """Generate and assemble the kernels; memory for what goes between them."""
    kernels = [Kernel(emit(graph, region, lanes), len(region.inputs) + 1) for region in regions]
    made = {r.root.name: np.zeros(graph.shapes[r.root.name], np.float32) for r in regions}
    return Program(graph, regions, kernels, {**inputs, **made})


# ---- Part 7: measuring (machine/probe, runtime/profile). The roofs are measured with kernels of
# their own: a dot whose operands stay in the nearest cache, a pass over memory, and almost nothing.


def best_seconds(call: Callable[[], None], seconds: float) -> float:
    """The best time of a call; the best is the one that nobody disturbed."""
    call()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - began)
    return best


def probe(seconds: float) -> Machine:
    """The roofs of this machine as this code can reach them, on one core."""
    lanes = host()[1]

    def time_of(graph: Graph) -> float:
        regions, _ = fuse(graph, Machine(1, 1, 0, lanes), join=False)
        program = build(graph, regions, random_inputs(graph), lanes)
        return best_seconds(next(iter(program.calls())), seconds)

    def one(op: str, shapes: dict[str, tuple[int, ...]], result: tuple[int, int]) -> Graph:
        return Graph((Node("y", op, tuple(shapes)),), {**shapes, "y": result}, "y")

    width = VECTORS * lanes
    near = one("dot", {"x": (ROWS, 256), "w": (256, width)}, (ROWS, width))
    tiny = one("add", {"x": (ROWS, width), "bias": (width,)}, (ROWS, width))
    large = one("add", {"x": (1536, 512), "bias": (512,)}, (1536, 512))
    launch = time_of(tiny)
    flops = cost(near, Region(near.nodes)).flops
    nbytes = cost(large, Region(large.nodes)).nbytes
    peak = flops / max(1e-9, time_of(near) - launch)
    return Machine(peak, nbytes / max(1e-9, time_of(large) - launch), launch, lanes)


def random_inputs(graph: Graph) -> dict[str, Array]:
    """Normal numbers for what no node computes; `zero` is zero."""
    rng, made = np.random.default_rng(0), {node.name for node in graph.nodes}
    return {
        name: rng.standard_normal(shape).astype(np.float32) * (name != "zero")
        for name, shape in graph.shapes.items()
        if name not in made
    }


# ---- Part 8: the explanation (report). Each kernel under the roof, and what fusion did to it.


def report(program: Program, machine: Machine, seconds: float) -> float:
    """Print a line a kernel; the sum of the times."""
    total = 0.0
    print(f"  {'kernel':24s} {'FLOP/B':>7s} {'us':>8s} {'roof us':>8s} {'share':>6s}  bound")
    for region, call in zip(program.regions, program.calls(), strict=True):
        work = cost(program.graph, region)
        took = max(best_seconds(call, seconds) - machine.launch, 1e-9)
        roof = limit(machine, work)
        bound = "compute" if work.flops / machine.peak == roof else "memory"
        intensity = work.flops / work.nbytes
        print(
            f"  {region!s:24s} {intensity:7.2f} {took * 1e6:8.1f} {roof * 1e6:8.1f} "
            f"{roof / took:6.0%}  {bound}"
        )
        total += took
    return total


def main(seconds: float = 0.2) -> dict[str, float]:
    """The whole tour; gives the largest errors and the times, by name."""
    graph = layer()
    inputs = random_inputs(graph)
    machine = probe(seconds)
    print(
        f"roofs: {machine.peak / 1e9:.0f} GFLOP/s, {machine.bandwidth / 1e9:.0f} GB/s, "
        f"{machine.launch * 1e6:.1f} us a call, {machine.lanes} floats a vector\n"
    )
    want = truth(graph, inputs)
    results: dict[str, float] = {}
    for name, join in (("unfused", False), ("fused", True)):
        regions, ledger = fuse(graph, machine, join)
        program = build(graph, regions, inputs, machine.lanes)
        error = float(np.abs(program.run() - want).max() / np.abs(want).max())
        print(f"{name}: {len(regions)} kernels, largest error {error:.1e} of the largest value")
        for verdict in ledger:
            word = "taken" if verdict.taken else "refused"
            print(f"  {word}: {verdict.producer} -> {verdict.consumer}: {verdict.reason}")
        results |= {f"{name} kernels": len(regions), f"{name} error": error}
        results[f"{name} seconds"] = report(program, machine, seconds)
        print()
    print("the fused kernel's tile program:")
    print(tile_program(regions[0]))
    ratio = results["unfused seconds"] / results["fused seconds"]
    print(f"\nfusion made the layer {ratio:.2f}x as fast: the same operations, fewer bytes")
    return results


if __name__ == "__main__":
    main()
