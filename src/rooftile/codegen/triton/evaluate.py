"""Expressions of the tile IR as Triton text: one block operation a tile operation."""

from __future__ import annotations

from dataclasses import dataclass

from rooftile.codegen.triton.address import Addresses
from rooftile.codegen.triton.blocks import Blocks, Group, Order
from rooftile.codegen.triton.names import Names
from rooftile.codegen.triton.scalar import NAN, TYPES, apply, bare, convert, identity, literal
from rooftile.codegen.triton.writer import Writer
from rooftile.core.affine import Affine
from rooftile.core.dtype import kind
from rooftile.core.errors import NotLowered
from rooftile.ir.tile.query import halo_of
from rooftile.ir.tile.records import (
    Cast,
    Const,
    Dot,
    Iota,
    Iterate,
    Last,
    Load,
    Map,
    Reduce,
    Ref,
    Rename,
    Tile,
    children,
)

LITERALS = ("f32", "i32", "i64")
"""Types whose constants may stand as Python literals beside a block of the same type."""


@dataclass(frozen=True)
class Block:
    """Text of a value, the groups along its dims, and whether it needs no parentheses."""

    text: str
    order: Order
    is_atom: bool = True

    @property
    def atom(self) -> str:
        """The text as an operand."""
        return self.text if self.is_atom else f"({self.text})"


class Evaluator:
    """Writes what an expression needs as statements, and gives its value as a `Block`."""

    def __init__(self, blocks: Blocks, names: Names, writer: Writer, masks: dict[str, str]) -> None:
        self.blocks = blocks
        self.names = names
        self.writer = writer
        self.masks = masks
        self.addresses = Addresses(blocks, names, masks)
        self.values: dict[str, Block] = {}
        self.lets: dict[str, Tile] = {}
        self.fault = names.fresh("fault")

    def value(self, tile: Tile, order: Order | None = None, name: str | None = None) -> Block:
        """The value, its groups in the given order, else in one that needs no permutation.

        `name` is the variable that a load may be read into.
        """
        if order is None:
            order = self.natural(tile)
        order = tuple(group for group in order if group in self.blocks.of(tile))
        if isinstance(tile, Ref):
            return self.permuted(self.values[tile.name], order)
        if isinstance(tile, Const):
            return Block(self.constant(tile), ())
        if isinstance(tile, Load):
            return self.load(tile, order, name)
        if isinstance(tile, Iota):
            return self.iota(tile)
        if isinstance(tile, Map):
            return self.map(tile, order)
        if isinstance(tile, Cast):
            return self.cast(tile, order, name)
        if isinstance(tile, Reduce):
            return self.permuted(self.reduce(tile), order)
        if isinstance(tile, Dot):
            return self.permuted(self.dot(tile), order)
        if isinstance(tile, (Iterate, Last)):
            raise NotLowered("Triton has no form of loops that end by their data")
        return self.rename(tile, order)

    def natural(self, tile: Tile) -> Order:
        """The order of groups in which a tile comes without permuting a value that exists."""
        if isinstance(tile, Ref):
            return self.values[tile.name].order
        if isinstance(tile, Dot) and self.blocks.is_matrix(tile):
            rows, cols, _ = self.blocks.sides(tile)
            return self.blocks.order(rows + cols)
        if isinstance(tile, Reduce):
            reduced = self.blocks.groups[tile.axis]
            return tuple(group for group in self.natural(tile.x) if group != reduced)
        if isinstance(tile, Cast):
            return self.natural(tile.x)
        if isinstance(tile, Rename):
            return self._renamed(tile, self.natural(tile.x))
        if isinstance(tile, Map):
            fixed = [arg for arg in tile.args if not isinstance(arg, (Load, Const))]
            first = max((self.natural(arg) for arg in fixed or tile.args), key=len)
            return tuple(dict.fromkeys(first + self.blocks.of(tile)))
        return self.blocks.of(tile)

    def fit(self, tile: Tile, order: Order) -> str:
        """The value as an operand that broadcasts over `order`."""
        block = self.value(tile, order)
        if block.order in (order, ()):
            return block.atom
        marks = ", ".join(":" if group in block.order else "None" for group in order)
        return f"{block.atom}[{marks}]"

    def full(self, tile: Tile, order: Order) -> str:
        """The value as a block of its own that has every group of `order`."""
        if isinstance(tile, Const):
            shape = _tuple(self.blocks.shape(order))
            return f"tl.full({shape}, {literal(tile.value, tile.dtype)}, {TYPES[tile.dtype]})"
        block = self.value(tile, order)
        if block.order == order:
            return block.text
        return f"tl.broadcast_to({self.fit(tile, order)}, {_tuple(self.blocks.shape(order))})"

    def permuted(self, block: Block, order: Order) -> Block:
        """The block with its groups in another order."""
        if block.order == order:
            return block
        places = _tuple(tuple(block.order.index(group) for group in order))
        return Block(f"tl.permute({block.text}, {places})", order)

    def constant(self, tile: Const) -> str:
        """A scalar constant: a literal, or a typed scalar where a literal would lose its type."""
        text = literal(tile.value, tile.dtype)
        return text if tile.dtype in LITERALS else f"tl.full((), {text}, {TYPES[tile.dtype]})"

    def iota(self, tile: Iota) -> Block:
        """Absolute positions, i64."""
        text = f"tl.cast({self.names[tile.axis]}, tl.int64)"
        return Block(text, self.blocks.of(tile))

    def map(self, tile: Map, order: Order) -> Block:
        """A scalar operation on blocks."""
        args = [self.fit(arg, order) for arg in tile.args]
        if all(isinstance(arg, Const) for arg in tile.args):
            args = [self.full(arg, ()) for arg in tile.args]
        if tile.op == "where" and all(isinstance(arg, Const) for arg in tile.args[1:]):
            args[1] = self.full(tile.args[1], ())
        text, atom = apply(tile.op, self.blocks.scope.dtype(tile.args[-1]), args)
        return Block(text, order, atom)

    def cast(self, tile: Cast, order: Order, name: str | None) -> Block:
        """A conversion to another type."""
        if isinstance(tile.x, Const) and not tile.bits:
            return Block(self.full(Const(tile.x.value, tile.dtype), ()), ())
        source = self.blocks.scope.dtype(tile.x)
        if source == tile.dtype:
            return self.value(tile.x, order, name)
        block = self.value(tile.x, order)
        if tile.bits:
            return Block(f"{block.atom}.to({TYPES[tile.dtype]}, bitcast=True)", block.order)
        return Block(convert(block.atom, source, tile.dtype), block.order)

    def rename(self, tile: Rename, order: Order) -> Block:
        """The same value under another axis."""
        old, new = self.blocks.groups[tile.old], self.blocks.groups[tile.new]
        block = self.value(tile.x, tuple(old if group == new else group for group in order))
        return Block(block.text, self._renamed(tile, block.order), block.is_atom)

    def _renamed(self, tile: Rename, order: Order) -> Order:
        old, new = self.blocks.groups[tile.old], self.blocks.groups[tile.new]
        return tuple(new if group == old else group for group in order)

    # Memory

    def load(self, tile: Load, order: Order, name: str | None) -> Block:
        """A load into a variable, masked where elements may not exist."""
        buf = self.blocks.scope.bufs[tile.buf]
        affines = [part for part in tile.index if isinstance(part, Affine)]
        mask = self.addresses.exists(affines, order)
        parts: list[Affine | str] = []
        for which, part in enumerate(tile.index):
            if isinstance(part, Affine):
                parts.append(self.bounded(tile, which, part, order, mask))
            else:
                parts.append(self.checked(tile, which, part, order, mask))
        offset = self.addresses.offset(buf, parts, order)
        pointer = f"{self.names[buf.name]} + {offset}" if offset else self.names[buf.name]
        masked = f", mask={' & '.join(mask)}" if mask else ""
        if masked:
            masked += f", other={literal(tile.pad or 0, buf.dtype)}"
        target = name or self.names.fresh(f"{buf.name}_tile")
        self.writer.line(f"{target} = tl.load({pointer}{masked})")
        return Block(target, order)

    def bounded(
        self, load: Load, which: int, part: Affine, order: Order, mask: list[str]
    ) -> Affine | str:
        """An affine index; where it can leave the shape, a variable, and conditions in `mask`."""
        buf = self.blocks.scope.bufs[load.buf]
        halo = (0, 0) if load.pad else halo_of(buf, which)
        below, above = self.addresses.leaves(buf, which, part, halo)
        if not below and not above:
            return part
        own = self.blocks.order(name for name in part.names if name in self.blocks.groups)
        own = own if len(own) <= 1 else order
        name = self.names.fresh(f"{buf.name}_{which}")
        self.writer.line(f"{name} = {self.addresses.index(part, own)}")
        text = name if own in (order, ()) else self.addresses.spread(name, own[0], order)
        if below:
            mask.append(f"({text} >= 0)")
        if above:
            mask.append(f"({text} < {self.names.extent(buf.shape[which])})")
        return text

    def checked(self, load: Load, which: int, part: Tile, order: Order, mask: list[str]) -> str:
        """A block of indices from data; one outside the dim raises the kernel's fault flag."""
        extent = self.names.extent(self.blocks.scope.bufs[load.buf].shape[which])
        index = self.names.fresh("index")
        self.writer.line(f"{index} = {self.fit(part, order)}")
        valid = self.names.fresh("valid")
        self.writer.line(f"{valid} = ({index} >= 0) & ({index} < {extent})")
        there = [
            self.addresses.spread(self.masks[name], self.blocks.groups[name], order)
            for name in self.blocks.scope.dims(part)
            if name in self.masks
        ]
        wrong = " & ".join([f"({valid} == 0)", *there])
        self.writer.line(
            f"tl.store({self.fault} + tl.cast({index} * 0, tl.int32), 1, mask={wrong})"
        )
        mask += [*(text for text in there if text not in mask), valid]
        return index

    # Contractions

    def reduce(self, tile: Reduce) -> Block:
        """A reduction along one group; elements that do not exist are made neutral."""
        group = self.blocks.groups[tile.axis]
        if group != (tile.axis,):
            raise NotLowered(
                f"kernel {self.blocks.kernel.name}: {tile.op} over {tile.axis}, one of the matrix "
                f"dims {' '.join(group)}"
            )
        dtype = self.blocks.scope.dtype(tile.x)
        block = self.value(tile.x)
        wide = "f32" if dtype in ("f16", "bf16") else dtype
        text = convert(block.atom, dtype, wide) if wide != dtype else block.text
        if tile.op != "sum" or not self.is_zero_behind(tile.x, tile.axis):
            text = self.neutral(bare(text), block.order, group, identity(tile.op, wide))
        at = block.order.index(group)
        if tile.op == "sum":
            text = f"tl.sum({text}, axis={at})"
        elif tile.op == "prod" or kind(wide) == "float":
            text = f"tl.reduce({text}, {at}, {self.writer.helper(tile.op, _COMBINE[tile.op])})"
        else:
            text = f"tl.{tile.op}({text}, axis={at})"
        narrow = wide != dtype or dtype in ("i8", "i16", "u8", "u16")
        text = f"{text}.to({TYPES[dtype]})" if narrow else text
        return Block(text, tuple(other for other in block.order if other != group))

    def neutral(self, text: str, order: Order, group: Group, value: str) -> str:
        """A block with `value` in place of elements that do not exist along `group`."""
        masks = [self.masks[name] for name in group if name in self.masks]
        if not masks:
            return text
        mask = " & ".join(self.addresses.spread(mask, group, order) for mask in masks)
        return f"tl.where({mask}, {text}, {value})"

    def is_zero_behind(self, tile: Tile, axis: str) -> bool:
        """Whether elements that do not exist along an axis are 0 without being made so."""
        if isinstance(tile, Load):
            names = {n for part in tile.index if isinstance(part, Affine) for n in part.names}
            return axis in names and not tile.pad
        if isinstance(tile, Ref):
            return tile.name in self.lets and self.is_zero_behind(self.lets[tile.name], axis)
        return isinstance(tile, Cast) and self.is_zero_behind(children(tile)[0], axis)

    def dot(self, tile: Dot) -> Block:
        """A matrix product on tensor cores, or products and sums where it is none."""
        if not self.blocks.is_matrix(tile):
            return self.products(tile)
        rows, cols, over = (self.blocks.order(side) for side in self.blocks.sides(tile))
        a = self.operand(tile.a, rows + over, tile.over)
        b = self.operand(tile.b, over + cols, tile.over)
        acc_type = "i32" if tile.dtype == "i32" else "f32"
        options = ""
        if self.blocks.scope.dtype(tile.a) == "f32":
            options = f', input_precision="{tile.precision}"'
        elif acc_type == "i32":
            options = ", out_dtype=tl.int32"
        order = rows + cols
        zero = isinstance(tile.acc, Const) and tile.acc.value == 0
        if tile.acc is not None and not zero:
            acc = convert(f"({self.full(tile.acc, order)})", tile.dtype, acc_type)
            acc = acc[1:-1] if tile.dtype == acc_type else acc
            options = f", acc={acc}{options}"
        text = f"tl.dot({a}, {b}{options})"
        return Block(convert(text, acc_type, tile.dtype), order)

    def operand(self, tile: Tile, order: Order, over: tuple[str, ...]) -> str:
        """An operand of `tl.dot`, 0 where elements do not exist along the summed axes."""
        text = self.full(tile, order)
        loose = [name for name in over if not self.is_zero_behind(tile, name)]
        for group in self.blocks.order(loose):
            text = self.neutral(text, order, group, "0.0")
        return text

    def products(self, tile: Dot) -> Block:
        """A contraction by broadcast products and sums."""
        order = self.blocks.order(self.blocks.scope.dims(tile.a) + self.blocks.scope.dims(tile.b))
        parts = []
        for side in (tile.a, tile.b):
            text, dtype = self.fit(side, order), self.blocks.scope.dtype(side)
            parts.append(convert(text, dtype, tile.dtype))
        text = " * ".join(parts)
        for group in self.blocks.order(tile.over):
            if set(group) - set(tile.over):
                raise NotLowered(
                    f"kernel {self.blocks.kernel.name}: dot over a part of {' '.join(group)}"
                )
            text = self.neutral(text, order, group, "0")
            text = f"tl.sum({text}, axis={order.index(group)})"
            order = tuple(other for other in order if other != group)
        atom = bool(tile.over)
        if tile.acc is not None:
            text, atom = f"{self.fit(tile.acc, order)} + {text}", False
        return Block(text, order, atom)


_COMBINE = {
    "max": f"tl.maximum(a, b, {NAN})",
    "min": f"tl.minimum(a, b, {NAN})",
    "prod": "a * b",
}


def _tuple(items: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, items))}{',' if len(items) == 1 else ''})"
