"""Random tile expressions: loads, maps, reductions, dots, renames over a few random axes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from rooftile.core.affine import Affine, affine
from rooftile.core.dtype import kind
from rooftile.ir.tile import (
    Axis,
    Buf,
    Cast,
    Const,
    Dot,
    Iota,
    Kernel,
    Load,
    Map,
    Part,
    Reduce,
    Ref,
    Rename,
    Scope,
    Tile,
)
from rooftile.ir.tile.records import Extent

SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 18, 23, 31, 32, 33)
INTEGERS = ("i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8")
HALVES = ("f16", "bf16")
MOST_CELLS = 6000
"""Points of the iteration space of one statement, to keep the interpreter quick."""


class Expressions:
    """Axes and buffers of one random kernel, and tiles over them."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.exact = rng.random() < 0.7
        self.float = rng.choice(("f32", "f32", "f32", "f64"))
        self.bufs: list[Buf] = []
        self.gathered: dict[str, int] = {}
        self.lets: list[str] = []
        self.names = 0
        self.symbols: dict[str, int] = {}
        self._axes()

    # -- axes

    def _axes(self) -> None:
        rng = self.rng
        sizes = [rng.choice(SIZES) for _ in range(6)]
        while np.prod([float(s) for s in sizes]) > MOST_CELLS * 50:
            sizes[sizes.index(max(sizes))] = rng.choice(SIZES[:6])
        twin = rng.random() < 0.3
        self.extent = dict(zip(("g", "h", "m", "n", "r", "s"), sizes, strict=True))
        if twin:
            self.extent["s"] = self.extent["n"]
        grid = [name for name in ("g", "h") if rng.random() < 0.6]
        out = [name for name in ("m", "n") if rng.random() < 0.8 or (name == "n" and not grid)]
        self.out = [*grid, *out]
        self.reduced = ["r", "s"]
        self.grid = tuple(self._grid_axis(name) for name in grid)
        self.whole = tuple(Axis(name, self.extent[name]) for name in (*out, *self.reduced))
        self.loop_axis: Axis | None = None
        if rng.random() < 0.4:
            self.extent["k"] = rng.choice(SIZES[:10])
            self.loop_axis = Axis("k", self.extent["k"], self._tile("k"))
        self.scope = Scope(Kernel("fuzz", (), self.grid, self.whole, ()))
        if self.loop_axis:
            self.scope.axes["k"] = self.loop_axis

    def _grid_axis(self, name: str) -> Axis:
        if self.rng.random() < 0.2:
            self.symbols["N" + name] = self.extent[name]
            return Axis(name, affine("N" + name), self._tile(name))
        return Axis(name, self.extent[name], self._tile(name))

    def _tile(self, name: str) -> Extent:
        if self.rng.random() < 0.25:
            return "point"
        return self.rng.randint(1, self.extent[name] + 2)

    def fresh(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    # -- expressions

    def expr(self, dims: Sequence[str], depth: int, dtype: str) -> Tile:
        """A tile of `dtype` whose axes are among `dims`."""
        rng = self.rng
        makers: list[Callable[[Sequence[str], int, str], Tile]] = [self._load]
        if depth > 0:
            makers += [self._map, self._map, self._map, self._load, self._where, self._cast]
            if dtype != "bool":
                makers += [self._reduce, self._dot, self._rename]
        else:
            makers += [self._load, self._load, self._const, self._iota]
        if self.lets:
            makers += [self._ref, self._ref]
        return rng.choice(makers)(dims, depth, dtype)

    def _ref(self, dims: Sequence[str], depth: int, dtype: str) -> Tile:
        fits = [
            name
            for name in self.lets
            if self.scope.tiles[name][1] == dtype and set(self.scope.tiles[name][0]) <= set(dims)
        ]
        return Ref(self.rng.choice(fits)) if fits else self._load(dims, depth, dtype)

    def _const(self, dims: Sequence[str], depth: int, dtype: str) -> Tile:
        return Const(self.rng.randint(0, 3 if dtype != "bool" else 1), dtype)

    def _iota(self, dims: Sequence[str], depth: int, dtype: str) -> Tile:
        if not dims or dtype == "bool":
            return self._const(dims, depth, dtype)
        place: Tile = Iota(self.rng.choice(list(dims)))
        if kind(dtype) == "float" and not self.exact:
            return Map("mul", (Cast(place, dtype), Const(0.05, dtype)))
        return Cast(place, dtype)

    def _map(self, dims: Sequence[str], depth: int, dtype: str) -> Tile:
        rng = self.rng
        if dtype == "bool":
            op = rng.choice(("and", "or", "not", "lt", "le", "eq"))
            other = dtype if op in ("and", "or", "not") else rng.choice(("i32", "u8", "i64"))
            if op in ("lt", "le", "eq") and self.exact:
                other = rng.choice((other, self.float))
            args = [self.expr(dims, depth - 1, other) for _ in range(1 if op == "not" else 2)]
            return Map(op, tuple(args))
        floats = kind(dtype) == "float"
        ops = ["add", "sub", "mul", "max", "min", "neg", "abs"]
        if not floats:
            ops.append("div")
        elif self.exact:
            ops += ["floor", "ceil", "round"]
        else:
            ops += ["tanh", "erf", "exp", "sqrt", "log", "div"]
        op = rng.choice(ops)
        first = self.expr(dims, depth - 1, dtype)
        if op in ("neg", "abs", "floor", "ceil", "round", "tanh", "erf"):
            return Map(op, (first,))
        if op == "exp":
            return Map("exp", (Map("tanh", (first,)),))
        if op in ("sqrt", "log"):
            return Map(op, (Map("add", (Map("abs", (first,)), Const(0.5, dtype))),))
        second = self.expr(dims, depth - 1, dtype)
        if op == "div" and floats:
            second = Map("add", (Map("abs", (second,)), Const(1, dtype)))
        return Map(op, (first, second))

    def _where(self, dims: Sequence[str], depth: int, dtype: str) -> Tile:
        condition = self.expr(dims, depth - 1, "bool")
        yes, no = self.expr(dims, depth - 1, dtype), self.expr(dims, 0, dtype)
        return Map("where", (condition, yes, no))

    def _cast(self, dims: Sequence[str], depth: int, dtype: str) -> Tile:
        sources = [*INTEGERS, "bool"]
        if self.exact:
            sources += ["f32", "f64", "f16", "bf16"]
        elif kind(dtype) == "float":
            sources += ["f32"]
        source = self.rng.choice(sources)
        x = self.expr(dims, depth - 1, source)
        if kind(source) == "float" and kind(dtype) in ("int", "uint"):
            x = Map("max", (Map("min", (x, Const(100, source))), Const(0, source)))
        elif dtype in HALVES:
            x = self._small(x, source)
        elif kind(source) in ("int", "uint") and kind(dtype) == "float":
            x = Map("min", (Map("max", (x, Const(0, source))), Const(4, source)))
        return Cast(x, dtype)

    def _small(self, x: Tile, dtype: str) -> Tile:
        """Within what every float type holds exactly."""
        if dtype == "bool":
            return x
        low = 0 if kind(dtype) == "uint" else -8
        return Map("min", (Map("max", (x, Const(low, dtype))), Const(8, dtype)))

    def _reduce(self, dims: Sequence[str], depth: int, dtype: str) -> Tile:
        axes = [name for name in self.reduced if name not in dims]
        if not axes:
            return self._map(dims, depth, dtype)
        axis = self.rng.choice(axes)
        op = self.rng.choice(("sum", "sum", "max", "min"))
        if kind(dtype) != "float" and self.rng.random() < 0.2:
            op = "prod"
        return Reduce(op, self._spanning(dims, (axis,), depth - 1, dtype), axis)

    def _dot(self, dims: Sequence[str], depth: int, dtype: str) -> Tile:
        axes = [name for name in self.reduced if name not in dims]
        if not axes or (kind(dtype) != "float" and dtype not in ("i32", "i64")):
            return self._map(dims, depth, dtype)
        over = tuple(self.rng.sample(axes, self.rng.randint(1, len(axes))))
        source = dtype
        if kind(dtype) != "float":
            source = self.rng.choice(("i8", "u8", "i32", dtype))
            source = source if dtype == "i64" or source != "i64" else "i8"
        parts = [tuple(d for d in dims if self.rng.random() < 0.7) for _ in range(2)]
        a, b = (self._spanning(part, over, depth - 1, source) for part in parts)
        dot = Dot(a, b, over, None, dtype)
        if self.rng.random() < 0.3:
            spans = self.scope.dims(dot)
            acc = self.expr(spans, depth - 1, dtype)
            if set(self.scope.dims(acc)) == set(spans):
                dot = replace(dot, acc=acc)
        return dot

    def _spanning(self, dims: Sequence[str], axes: Sequence[str], depth: int, dtype: str) -> Tile:
        """A tile over some of `dims` that spans all `axes`."""
        tile = self.expr((*dims, *axes), depth, dtype)
        missing = [name for name in axes if name not in self.scope.dims(tile)]
        if missing:
            tile = Map("add", (tile, self._load_of(missing, dims, dtype)))
        return tile

    def _rename(self, dims: Sequence[str], depth: int, dtype: str) -> Tile:
        old, new = self.rng.sample(("n", "s"), 2)
        whole = {axis.name for axis in self.whole}
        same = self.extent["n"] == self.extent["s"] and {"n", "s"} <= whole
        if not same or new not in dims:
            return self._map(dims, depth, dtype)
        rest = [name for name in dims if name not in (old, new)]
        return Rename(self._spanning(rest, (old,), depth - 1, dtype), old, new)

    # -- loads

    def _load(self, dims: Sequence[str], depth: int, dtype: str) -> Tile:
        must = [name for name in dims if self.rng.random() < 0.6]
        return self._load_of(must, (), dtype)

    def _load_of(self, must: Sequence[str], may: Sequence[str], dtype: str) -> Tile:
        """A load whose index names every axis in `must` and perhaps some of `may`."""
        rng = self.rng
        names = [*must, *(name for name in may if rng.random() < 0.4)]
        rng.shuffle(names)
        index: list[Affine | Tile] = []
        while names:
            count = 2 if len(names) > 1 and rng.random() < 0.25 else 1
            some, names = names[:count], names[count:]
            coefs = [rng.choice((1, 1, 1, 1, 2, -1, 3)) for _ in some]
            index.append(sum((affine(n) * c for n, c in zip(some, coefs, strict=True)), Affine()))
        if rng.random() < 0.15:
            index.insert(rng.randint(0, len(index)), Affine((), rng.randint(0, 2)))
        padded = rng.random() < 0.3 and bool(index)
        shape: list[int | Affine] = []
        for place, part in enumerate(index):
            assert isinstance(part, Affine)
            low, high = part.range(self.extent)
            shift = rng.randint(0, 2) - low
            extent = high - low + 3 + rng.randint(0, 1)
            if padded and rng.random() < 0.6:
                shift += rng.randint(-4, 4)
                extent = max(1, extent - rng.randint(0, 5))
            index[place] = part + shift
            symbol = self._symbol_of(part) if not padded else None
            if symbol and part.const == 0 and rng.random() < 0.7:
                index[place], shape_of = part, affine(symbol)
                shape.append(shape_of)
            else:
                shape.append(extent)
        if any(self._symbolic(part) for part in index) and not padded:
            padded = True
        gathers = dtype != "bool" and rng.random() < 0.08 and bool(index)
        if gathers:
            self._gather(index, shape)
        pad = self._pad(dtype) if padded else None
        buf = self._buf(shape, dtype, gathers, padded)
        return Load(buf.name, tuple(index), pad)

    def _symbol_of(self, part: Affine) -> str | None:
        names = part.names
        if len(names) == 1 and part.coef(names[0]) == 1 and "N" + names[0] in self.symbols:
            return "N" + names[0]
        return None

    def _symbolic(self, part: Affine | Tile) -> bool:
        return isinstance(part, Affine) and any("N" + name in self.symbols for name in part.names)

    def _pad(self, dtype: str) -> float:
        if kind(dtype) == "float" and self.rng.random() < 0.2:
            return self.rng.choice((float("-inf"), float("inf"))) if self.exact else 1.0
        return (
            self.rng.choice((0, 0, 0, 1)) if dtype == "bool" else self.rng.choice((0, 0, 0, 1, 3))
        )

    def _gather(self, index: list[Affine | Tile], shape: list[int | Affine]) -> None:
        """Replace one affine index by a tile of indices that stay inside."""
        place = self.rng.randrange(len(index))
        part, extent = index[place], shape[place]
        if not isinstance(extent, int) or not isinstance(part, Affine):
            return
        dtype = self.rng.choice(("i64", "i32"))
        ids = self._load_of(part.names, (), dtype)
        clipped = Map("min", (Map("abs", (ids,)), Const(extent - 1, dtype)))
        index[place] = clipped

    def _buf(self, shape: list[int | Affine], dtype: str, plain: bool, padded: bool) -> Buf:
        rng = self.rng
        buf = Buf(self.fresh("x"), tuple(shape), dtype)
        rank = len(shape)
        if rank and not plain and rng.random() < 0.3:
            buf = replace(buf, layout=self._layout(shape))
        split = buf.layout is not None and any(part != "all" for _, _, part in buf.layout)
        if rank and not split and rng.random() < (0.3 if padded else 0.1):
            halo = tuple((rng.randint(0, 2), rng.randint(0, 2)) for _ in shape)
            buf = replace(buf, halo=halo)
        self.bufs.append(buf)
        self.scope.bufs[buf.name] = buf
        return buf

    def _layout(self, shape: list[int | Affine]) -> tuple[tuple[int, int, Part], ...]:
        parts: list[tuple[int, int, Part]] = []
        for which, extent in enumerate(shape):
            if isinstance(extent, int) and self.rng.random() < 0.4:
                block = self.rng.choice((2, 3, 4, 8, 16))
                parts += [(which, block, "div"), (which, block, "mod")]
            else:
                parts.append((which, 1, "all"))
        self.rng.shuffle(parts)
        return tuple(parts)
