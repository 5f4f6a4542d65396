"""Sinks: where a tile is computed and stored, as a nest of register tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from rooftile.codegen.llvm.access import store
from rooftile.codegen.llvm.convert import cast
from rooftile.codegen.llvm.destination import Destination
from rooftile.codegen.llvm.reducer import Reducer
from rooftile.codegen.llvm.state import Point, Span, State
from rooftile.codegen.llvm.transpose import Turn, square, turning
from rooftile.codegen.llvm.values import Val, splat
from rooftile.core.affine import Affine, affine
from rooftile.core.dtype import DType, itemsize
from rooftile.ir.tile import Dot, Load, Reduce, Ref, Tile, children

Segment = tuple[int, int, int]
"""(start, count, size): `count` pieces of `size` elements, from `start`."""


@dataclass(frozen=True)
class Shape:
    """The register tile of a sink: vector axis and vectors in flight, rows by axis."""

    vector: str | None
    vectors: int
    rows: dict[str, int]


class Sink:
    """Computes an expression over the spans of its destination's dims, and stores it."""

    def __init__(
        self, state: State, reducer: Reducer, hints: dict[str, int], registers: int
    ) -> None:
        self.state = state
        self.reducer = reducer
        self.hints = hints
        self.registers = registers

    def __call__(self, tile: Tile, to: Destination) -> None:
        """Emit the loops."""
        self.state.forget()
        turn = turning(tile, to, self.state, self.reducer.vector_bytes)
        if turn is None:
            self._computed(tile, to)
        else:
            self._turned(turn, tile, to)
        self.state.forget()

    def _turned(self, turn: Turn, tile: Tile, to: Destination) -> None:
        """A copy by squares, and what they leave at the ends of both axes."""
        spans, width = self.state.spans, turn.width
        reads = self._cut(turn.read, width)
        writes = self._cut(turn.written, width)
        others = [(a, [(0, spans[a].size, 1)]) for a in to.dims if a not in vars(turn).values()]

        def piece(sizes: dict[str, int]) -> None:
            if sizes[turn.read] == sizes[turn.written] == width:
                square(turn, tile, to, self.reducer.evaluator)
            else:
                self._computed(tile, to)

        self._segments([*others, (turn.read, reads), (turn.written, writes)], {}, piece)

    def _cut(self, axis: str, width: int) -> list[Segment]:
        """Whole pieces of `width`, and what is left."""
        full, rest = divmod(self.state.spans[axis].size, width)
        return [(0, full, width)] + ([(full * width, 1, rest)] if rest else [])

    def _computed(self, tile: Tile, to: Destination) -> None:
        state = self.state
        before = state.vector_axis
        shape = self._shape(tile, to)
        state.vector_axis = shape.vector
        self._nest(tile, to, shape)
        state.vector_axis = before

    # -- the register tile

    def lanes(self, dtype: DType) -> int:
        """Lanes of a full vector."""
        return self.reducer.vector_bytes // max(itemsize(dtype), 4)

    def vector_axis(self, tile: Tile, dims: Sequence[str], to: Destination | None) -> str | None:
        """The dim along which most of the expression is contiguous."""
        state = self.state
        best: tuple[float, int, str] | None = None
        for number, axis in enumerate(dims):
            size = state.spans[axis].size
            if size < 2:
                continue
            before = state.vector_axis
            state.vector_axis = axis
            score = self._contiguity(tile)
            state.vector_axis = before
            if to is not None:
                score += 2 if to.stride(state, axis) == itemsize(to.dtype(state)) else -4
            score -= 2 if size < 4 else 0
            if best is None or (score, number) >= best[:2]:
                best = (score, number, axis)
        return best[2] if best and best[0] > -20 else None

    def crosses(self, tile: Tile, to: Destination) -> bool:
        """Whether a reduction in `tile` wants other vectors than those that `to` can store."""
        state = self.state
        if not _reductions(tile, state):
            return False
        best = self.vector_axis(tile, to.dims, None)
        if best is None or state.spans[best].size < 4:
            return False
        return to.stride(state, best) != itemsize(to.dtype(state))

    def _contiguity(
        self, tile: Tile, weight: float = 1.0, known: dict[str, float] | None = None
    ) -> float:
        """`known`: what Lets come to for a weight of 1; a Let may be read many times over."""
        state, known = self.state, {} if known is None else known
        if isinstance(tile, Ref) and tile.name in state.lets:
            if tile.name not in known:
                known[tile.name] = self._contiguity(state.lets[tile.name], 1.0, known)
            return known[tile.name] * weight
        if isinstance(tile, Load) and tile.pad is not None and self._pads_along(tile):
            return -3 * weight
        if isinstance(tile, (Load, Ref)):
            stride = self.reducer.stride(tile)
            local = isinstance(tile, Ref) and state.locals[tile.name].dtype
            size = itemsize(local or state.scope.dtype(tile))
            return 0.0 if stride == 0 else weight if stride == size else -3 * weight
        if isinstance(tile, (Dot, Reduce)):
            weight *= 8
        return sum(self._contiguity(child, weight, known) for child in children(tile))

    def _pads_along(self, load: Load) -> bool:
        """Whether lanes of one vector of a padded load may lie inside its buffer and outside."""
        axis = self.state.vector_axis or ""
        for part in load.index:
            if isinstance(part, Affine) and part.coef(axis):
                return part != affine(axis)
        return False

    def _shape(self, tile: Tile, to: Destination) -> Shape:
        state = self.state
        vector = self.vector_axis(tile, to.dims, to)
        others = [a for a in reversed(to.dims) if a != vector and state.spans[a].size > 1]
        reductions = _reductions(tile, state)
        lanes = self.lanes(to.dtype(state))
        total = -(-state.spans[vector].size // lanes) if vector else 1
        if not reductions:
            return Shape(vector, min(total, 4), {})
        shared = any(
            isinstance(r, Dot) and vector in state.free(r.a) and vector in state.free(r.b)
            for r in reductions
        )
        vectors = 1 if shared else min(total, 2)
        if vector in self.hints:
            vectors = max(1, -(-self.hints[vector] // lanes))
        # A last vector of fewer lanes needs its own copy of what all columns of a row share.
        last = state.spans[vector].size % (vectors * lanes) if vector else 0
        eighths = 6 if last > lanes and last % lanes else 7
        held = self.registers * eighths // 8
        limit = 8 if shared or not vector else held // (vectors * len(reductions))
        # Rows that read the same vectors of a dot's right operand share each of its loads.
        apart = {a for r in reductions if isinstance(r, Dot) for a in state.free(r.b)}
        rows: dict[str, int] = {}
        for axis in sorted(others, key=apart.__contains__):
            most = min(max(limit, 1), self.hints.get(axis, limit))
            if most > 1:
                rows[axis] = min(most, state.spans[axis].size)
                limit //= rows[axis]
        return Shape(vector, vectors, rows)

    # -- the loops

    def _nest(self, tile: Tile, to: Destination, shape: Shape) -> None:
        state = self.state
        lanes = self.lanes(to.dtype(state))
        rows = [a for a in to.dims if a in shape.rows]
        outer = [a for a in to.dims if a != shape.vector and a not in shape.rows]
        peeled = self._padded_axes(tile)
        steps: list[tuple[str, list[Segment]]] = [
            (axis, [(0, state.spans[axis].size, 1)]) for axis in outer
        ]
        panels: list[tuple[str, list[Segment]]] = []
        if shape.vector:
            size, panel = state.spans[shape.vector].size, shape.vectors * lanes
            cut = [(0, size // panel, panel)] if size >= panel else []
            if size % panel:
                cut.append((size // panel * panel, 1, size % panel))
            panels = [(shape.vector, cut)]
        blocks = [
            (axis, _peel(split(state.spans[axis].size, shape.rows[axis]), axis in peeled))
            for axis in rows
        ]
        order = panels + steps + blocks if _reductions(tile, state) else steps + blocks + panels
        self._segments(order, {}, lambda sizes: self._register_tile(tile, to, shape, lanes, sizes))

    def _segments(
        self,
        order: list[tuple[str, list[Segment]]],
        sizes: dict[str, int],
        body: Callable[[dict[str, int]], None],
    ) -> None:
        if not order:
            body(sizes)
            return
        (axis, segments), rest = order[0], order[1:]
        span = self.state.spans[axis]
        for start, count, size in segments:

            def inside(
                counter: Affine, _: list[str], start: int = start, size: int = size
            ) -> list[str]:
                at = span.base + start + counter * size
                with self.state.spanning(**{axis: Span(at, size)}):
                    self._segments(rest, {**sizes, axis: size}, body)
                return []

            self.state.loop(0, count, inside)

    def _register_tile(
        self, tile: Tile, to: Destination, shape: Shape, lanes: int, sizes: dict[str, int]
    ) -> None:
        state, evaluator = self.state, self.reducer.evaluator
        rows = [a for a in shape.rows if a in sizes]
        offsets = [
            dict(zip(rows, where, strict=True))
            for where in product(*(range(sizes[a]) for a in rows))
        ]
        points = [Point(offset) for offset in offsets]
        if shape.vector:
            pieces = vector_pieces(sizes[shape.vector], lanes)
            points = [
                Point({**offset, shape.vector: start}, width, count)
                for offset in offsets
                for start, width, count in pieces
            ]
        evaluator.prepare(tile, points)
        values = [evaluator.value(tile, point) for point in points]
        for point, value in zip(points, values, strict=True):
            wide = splat(state.writer, cast(state.writer, value, to.dtype(state)), point.width)
            if point.width and not to.contiguous(state, point):
                self._scatter(to, shape.vector or "", point, wide)
            else:
                store(state, to.address(state, point), wide, point.lanes)

    def _scatter(self, to: Destination, axis: str, point: Point, value: Val) -> None:
        """Store the lanes of a vector one by one, where the destination is not contiguous."""
        state = self.state
        for lane in range(point.lanes):
            here = point.at({axis: point.offsets.get(axis, 0) + lane})
            item = Val(state.writer.op(f"extractelement {value}, i64 {lane}"), value.dtype)
            store(state, to.address(state, here), item)

    def _padded_axes(self, tile: Tile) -> set[str]:
        """Axes whose ends may read outside a padded buffer."""
        state = self.state
        extents = {
            name: axis.extent
            for name, axis in state.scope.axes.items()
            if isinstance(axis.extent, int)
        }
        found: set[str] = set()
        for load in _padded_loads(tile, state):
            for dim, part in enumerate(load.index):
                extent = state.bufs[load.buf].shape[dim]
                if not isinstance(part, Affine) or not isinstance(extent, int):
                    continue
                if any(name not in extents for name in part.names):
                    continue
                low, high = part.range(extents)
                if low < 0 or high >= extent:
                    found.update(part.names)
        return found


def split(size: int, most: int) -> list[Segment]:
    """`size` cut into the fewest pieces of at most `most`, as equal as possible."""
    pieces = -(-size // most)
    low, longer = divmod(size, pieces)
    cut: list[Segment] = []
    if longer:
        cut.append((0, longer, low + 1))
    if pieces > longer:
        cut.append((longer * (low + 1), pieces - longer, low))
    return cut


def _peel(segments: list[Segment], wanted: bool) -> list[Segment]:
    """The first and the last piece apart, so that what they read outside is known."""
    if not wanted:
        return segments
    single: list[Segment] = []
    for number, (start, count, size) in enumerate(segments):
        first = number == 0 and count > 1
        last = number == len(segments) - 1 and count - first > 1
        if first:
            single.append((start, 1, size))
        middle = count - first - last
        if middle:
            single.append((start + first * size, middle, size))
        if last:
            single.append((start + (count - 1) * size, 1, size))
    return single


def vector_pieces(size: int, lanes: int) -> list[tuple[int, int, int]]:
    """(start, vector width, lanes that count) of the vectors that cover `size` elements."""
    pieces = [(start, lanes, lanes) for start in range(0, size - lanes + 1, lanes)]
    rest = size % lanes
    if rest:
        width = 4
        while width < rest:
            width *= 2
        pieces.append((size - rest, width, rest))
    return pieces


def _reductions(tile: Tile, state: State) -> list[Tile]:
    """The outermost Dots and Reduces of an expression, through the Lets that are not stored."""
    return [part for part in _parts(tile, state, set()) if isinstance(part, (Dot, Reduce))]


def _parts(tile: Tile, state: State, seen: set[str]) -> Iterator[Tile]:
    """What an expression is made of, down to Dots and Reduces; the parts of each Let once."""
    if isinstance(tile, Ref):
        if tile.name in state.lets and tile.name not in seen:
            seen.add(tile.name)
            yield from _parts(state.lets[tile.name], state, seen)
        return
    yield tile
    if not isinstance(tile, (Dot, Reduce)):
        for child in children(tile):
            yield from _parts(child, state, seen)


def _padded_loads(tile: Tile, state: State, seen: set[str] | None = None) -> list[Load]:
    """The padded loads of an expression, those of each Let once."""
    seen = set() if seen is None else seen
    if isinstance(tile, Ref):
        if tile.name not in state.lets or tile.name in seen:
            return []
        seen.add(tile.name)
        return _padded_loads(state.lets[tile.name], state, seen)
    own = [tile] if isinstance(tile, Load) and tile.pad is not None else []
    return own + [load for child in children(tile) for load in _padded_loads(child, state, seen)]
