"""Graph IR: what a model computes. Records, printer, parser, verifier."""

from rooftile.ir.graph.reader import parse, parse_regions
from rooftile.ir.graph.records import (
    Array,
    Attr,
    Graph,
    Node,
    Region,
    Value,
    attrs,
    symbols_in,
    verify,
    walk,
)
from rooftile.ir.graph.text import digest, regions_to_text, to_text

__all__ = [
    "Array",
    "Attr",
    "Graph",
    "Node",
    "Region",
    "Value",
    "attrs",
    "digest",
    "parse",
    "parse_regions",
    "regions_to_text",
    "symbols_in",
    "to_text",
    "verify",
    "walk",
]
