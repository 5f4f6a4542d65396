"""Evaluates tile expressions point by point: a point is one vector, or one scalar."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rooftile.codegen.llvm.access import Address, address, load_where
from rooftile.codegen.llvm.access import load as read
from rooftile.codegen.llvm.arith import binary, compare, select
from rooftile.codegen.llvm.bounds import Room
from rooftile.codegen.llvm.chains import iterate
from rooftile.codegen.llvm.convert import bitcast, cast, retag
from rooftile.codegen.llvm.scalar import apply
from rooftile.codegen.llvm.state import Place, Point, State
from rooftile.codegen.llvm.values import Val, constant, lane_mask, llvm_type, splat
from rooftile.core.affine import Affine
from rooftile.core.dtype import DType, itemsize, kind
from rooftile.ir.tile import (
    Cast,
    Const,
    Dot,
    Iota,
    Iterate,
    Load,
    Map,
    Reduce,
    Ref,
    Rename,
    Tile,
    children,
)
from rooftile.ir.tile.query import halo_of, inside
from rooftile.ir.tile.ranges import value_range

FAILED = "%failed.flag"
"""Where it is noted that an index lay outside its buffer."""

Reductions = Callable[[Tile, Sequence[Point]], None]


class Evaluator:
    """Values of expressions at points. `reduce` computes reductions for whole sets of points."""

    def __init__(self, state: State, reduce: Reductions) -> None:
        self.state = state
        self.reduce = reduce

    def prepare(
        self,
        tile: Tile,
        points: Sequence[Point],
        seen: set[str] | None = None,
        reductions: bool = True,
    ) -> None:
        """Compute the outermost reductions and iterates of `tile` at all points together, each Let
        once; the iterates alone without `reductions`."""
        state, seen = self.state, set() if seen is None else seen
        if isinstance(tile, (Dot, Reduce)):
            wanted = {state.key(tile, point): point for point in points} if reductions else {}
            missing = [p for key, p in wanted.items() if state.remembered(key) is None]
            if missing:
                self.reduce(tile, missing)
        elif isinstance(tile, Iterate):
            self.prepare(tile.init, points, seen, reductions)
            self._iterate(tile, points)
        elif isinstance(tile, Ref):
            if tile.name in state.lets and tile.name not in seen:
                seen.add(tile.name)
                self.prepare(state.lets[tile.name], points, seen, reductions)
        elif not isinstance(tile, Rename):
            for child in children(tile):
                self.prepare(child, points, seen, reductions)

    def _iterate(self, tile: Iterate, points: Sequence[Point]) -> None:
        state = self.state
        wanted = {state.key(tile, point): point for point in points}
        missing = {key: p for key, p in wanted.items() if state.remembered(key) is None}
        if missing:
            found = iterate(self, tile, list(missing.values()))
            state.memo[-1].update(zip(missing, found, strict=True))

    def value(self, tile: Tile, point: Point) -> Val:
        """The value of `tile` at a point: a vector if it varies along the vector axis."""
        state = self.state
        key = state.key(tile, point)
        known = state.remembered(key)
        if known is None:
            known = self._compute(tile, point)
            state.memo[-1][key] = known
        return known

    def _compute(self, tile: Tile, point: Point) -> Val:
        state = self.state
        if isinstance(tile, Const):
            return constant(tile.value, tile.dtype)
        if isinstance(tile, Load):
            return self._load(tile, point)
        if isinstance(tile, Ref):
            if tile.name in state.locals:
                return self._load_local(tile.name, point)
            return self.value(state.lets[tile.name], point)
        if isinstance(tile, Map):
            if tile.op == "min" and self._is_first(*tile.args):
                return self.value(tile.args[0], point)
            return apply(state.writer, tile.op, [self.value(arg, point) for arg in tile.args])
        if isinstance(tile, Cast):
            convert = bitcast if tile.bits else cast
            return convert(state.writer, self.value(tile.x, point), tile.dtype)
        if isinstance(tile, Iota):
            return self._iota(tile.axis, point)
        if isinstance(tile, Rename):
            return self._renamed(tile, point)
        if isinstance(tile, Iterate):
            self._iterate(tile, [point])
        else:
            self.reduce(tile, [point])
        computed = state.remembered(state.key(tile, point))
        assert computed is not None
        return computed

    def _is_first(self, a: Tile, b: Tile) -> bool:
        """Whether the smaller of two tiles is known to be the first: `b` limits nothing."""
        scope, last = self.state.scope, self.state.last
        if not isinstance(b, Const) or kind(b.dtype) == "float":
            return False
        return value_range(a, scope, last)[1] <= b.value

    def _renamed(self, tile: Rename, point: Point) -> Val:
        state = self.state
        axis = state.vector_axis
        offsets = dict(point.offsets)
        offsets[tile.old] = offsets.pop(tile.new, 0)
        inner = {tile.new: tile.old, tile.old: None}.get(axis or "", axis)
        with state.spanning(**{tile.old: state.spans[tile.new]}):
            state.vector_axis = inner
            value = self.value(tile.x, Point(offsets, point.width, point.lanes))
            state.vector_axis = axis
        return value

    def _iota(self, axis: str, point: Point) -> Val:
        writer = self.state.writer
        first = Val(writer.integer(self.state.position(axis, point)), "i64")
        if axis != self.state.vector_axis:
            return first
        lanes = ", ".join(f"i64 {lane}" for lane in range(point.width))
        steps = Val(f"<{lanes}>", "i64", point.width)
        return binary(writer, "add", splat(writer, first, point.width), steps)

    # -- memory

    def target(self, target: Load, point: Point) -> Address:
        """The address of a scalar; parts of its index that are tiles are checked."""
        state = self.state
        place = state.place(target, point, self._gathered(target, point))
        return address(state, state.room(target.buf), place)

    def _load_local(self, name: str, point: Point) -> Val:
        state = self.state
        local = state.locals[name]
        place = state.local_place(local, point)
        axis = state.vector_axis
        stride = dict(zip(local.dims, local.strides, strict=True)).get(axis or "", 0)
        found = self._read(local.room, place, local.dtype, stride, point)
        return retag(found, state.scope.tiles[name][1])

    def _load(self, load: Load, point: Point) -> Val:
        state = self.state
        undecided: list[int] = []
        if load.pad is not None:
            where = self.inside(load, point)
            if where == "out":
                return constant(load.pad, state.bufs[load.buf].dtype)
            undecided = [] if isinstance(where, str) else where
        stride = state.stride_at(load, point)
        if stride is None:
            return self._by_lane(load, point)
        gathered = self._gathered(load, point)
        if undecided:
            return self._guarded(load, point, undecided, stride, gathered)
        place = state.place(load, point, gathered)
        room = state.room(load.buf)
        return self._read(room, place, state.bufs[load.buf].dtype, stride, point)

    def inside(self, load: Load, point: Point) -> list[int] | str:
        """ "in" or "out" of the buffer where that is known now, else the dims that are not."""
        state = self.state
        buf = state.bufs[load.buf]
        undecided: list[int] = []
        for dim, part in enumerate(load.index):
            extent = buf.shape[dim]
            if not isinstance(part, Affine) or (id(load), dim) in state.inside:
                continue
            # A halo holds zeros: any other pad is not to be found there.
            low_halo, high_halo = halo_of(buf, dim) if load.pad == 0 else (0, 0)
            if inside(part, extent, state.scope.axes, (low_halo, high_halo)):
                continue
            terms, const = state.offset(part, point)
            bounds = state.writer.range(Affine(terms, const))
            reach = max(point.lanes - 1, 0) * part.coef(state.vector_axis or "")
            if bounds is None or not isinstance(extent, int):
                undecided.append(dim)
                continue
            low, high = bounds[0] + min(0, reach), bounds[1] + max(0, reach)
            if high < -low_halo or low >= extent + high_halo:
                return "out"
            if low < -low_halo or high >= extent + high_halo:
                undecided.append(dim)
        return undecided or "in"

    def _guarded(
        self, load: Load, point: Point, dims: list[int], stride: int, gathered: dict[int, str]
    ) -> Val:
        """A padded load whose place in `dims` is known only at run time."""
        state, writer = self.state, self.state.writer
        buf = state.bufs[load.buf]
        width = point.width if stride else 0
        if width and stride != itemsize(buf.dtype):
            return self._by_lane(load, point)
        mask = self._within(load, point, dims, width)
        place = state.place(load, point, gathered)
        assert load.pad is not None
        pad = constant(load.pad, buf.dtype, width)
        if width:
            mask = splat(writer, mask, width)
            if point.lanes < width:
                counted = Val(lane_mask(width, point.lanes), "bool", width)
                mask = binary(writer, "and", mask, counted)
            at = address(state, state.room(load.buf), place)
            return load_where(state, at, buf.dtype, mask, pad)
        offset = writer.integer(Affine(*place))
        safe = writer.op(f"select {mask}, i64 {offset}, i64 0")
        pointer = writer.op(f"getelementptr i8, ptr %{load.buf}, i64 {safe}")
        found = read(state, Address(pointer, state.room(load.buf)), buf.dtype)
        return select(writer, mask, found, pad)

    def _within(self, load: Load, point: Point, dims: list[int], width: int) -> Val:
        """Whether the point, or each of `width` lanes, lies inside the buffer's `dims`."""
        state, writer = self.state, self.state.writer
        mask: Val | None = None
        for dim in dims:
            part = load.index[dim]
            assert isinstance(part, Affine)
            at = Val(writer.integer(Affine(*state.offset(part, point))), "i64")
            step = part.coef(state.vector_axis or "")
            if width and step:
                lanes = ", ".join(f"i64 {step * lane}" for lane in range(width))
                steps = Val(f"<{lanes}>", "i64", width)
                at = binary(writer, "add", splat(writer, at, width), steps)
            extent = Val(state.extent(state.bufs[load.buf].shape[dim]), "i64")
            ok = compare(writer, "icmp ult", at, splat(writer, extent, at.width))
            if mask is not None:
                both = max(mask.width, ok.width)
                ok = binary(writer, "and", splat(writer, mask, both), splat(writer, ok, both))
            mask = ok
        assert mask is not None
        return mask

    def _gathered(self, load: Load, point: Point) -> dict[int, str]:
        """The parts of an index that are tiles, by dim: each checked against its dim, 0 and the
        failure noted where it lies outside. What cannot lie outside is not checked."""
        state, writer = self.state, self.state.writer
        found: dict[int, str] = {}
        for dim, part in enumerate(load.index):
            if isinstance(part, Affine):
                continue
            index = cast(writer, self.value(part, point), "i64")
            room = state.bufs[load.buf].shape[dim]
            low, high = value_range(part, state.scope, state.last)
            if low >= 0 and isinstance(room, int) and high < room:
                found[dim] = index.name
                continue
            extent = state.extent(room)
            ok = writer.op(f"icmp ult {index}, {extent}")
            found[dim] = writer.op(f"select i1 {ok}, {index}, i64 0")
            # Two bytes, of which the first says that a check failed: a store without a load, so
            # that checks do not wait for one another.
            good = writer.op(f"zext i1 {ok} to i64")
            note = writer.op(f"getelementptr i8, ptr {FAILED}, i64 {good}")
            writer.do(f"store i8 1, ptr {note}")
            state.checks = True
        return found

    def _by_lane(self, load: Load, point: Point) -> Val:
        """A vector put together from scalars, each lane a point of its own."""
        state = self.state
        axis = state.vector_axis
        assert axis is not None
        dtype = state.bufs[load.buf].dtype
        state.vector_axis = None
        start = point.offsets.get(axis, 0)
        lanes = [Point({**point.offsets, axis: start + lane}) for lane in range(point.lanes)]
        items = [self._load(load, lane) for lane in lanes]
        state.vector_axis = axis
        return self.assemble(items, dtype, point.width)

    def assemble(self, items: Sequence[Val], dtype: DType, width: int) -> Val:
        """A vector of scalars; lanes behind them are 0."""
        kind = llvm_type(dtype, width)
        name = "poison" if len(items) == width else "zeroinitializer"
        for lane, item in enumerate(items):
            name = self.state.writer.op(f"insertelement {kind} {name}, {item}, i64 {lane}")
        return Val(name, dtype, width)

    def _read(self, room: Room, place: Place, dtype: DType, stride: int, point: Point) -> Val:
        state = self.state
        width = point.width if stride else 0
        key = ("load", room.base, place, stride, width, point.lanes if width else 0)
        known = state.remembered(key)
        if known is None:
            if width and stride != itemsize(dtype):
                terms, const = place
                items = [
                    read(state, address(state, room, (terms, const + i * stride)), dtype)
                    for i in range(point.lanes)
                ]
                known = self.assemble(items, dtype, width)
            else:
                known = read(state, address(state, room, place), dtype, width, point.lanes)
            state.memo[-1][key] = known
        return known
