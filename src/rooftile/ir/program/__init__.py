"""Program IR: when and where. Buffers with offsets, and steps in order; all that a run needs."""

from rooftile.ir.program.lifetime import lifetimes
from rooftile.ir.program.place import bound, placed
from rooftile.ir.program.records import (
    Arg,
    Attr,
    Buffer,
    Copy,
    HostCall,
    KernelFacts,
    Launch,
    Loop,
    Port,
    Program,
    Space,
    Split,
    Step,
)
from rooftile.ir.program.text import parse, to_text
from rooftile.ir.program.verify import verify

__all__ = [
    "Arg",
    "Attr",
    "Buffer",
    "Copy",
    "HostCall",
    "KernelFacts",
    "Launch",
    "Loop",
    "Port",
    "Program",
    "Space",
    "Split",
    "Step",
    "bound",
    "lifetimes",
    "parse",
    "placed",
    "to_text",
    "verify",
]
