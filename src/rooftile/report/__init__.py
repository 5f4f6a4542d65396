"""Explains a compiled model from journal, program, timings and machine."""

from rooftile.report.facts import explain, explain_parts
from rooftile.report.records import Explanation, HostRow
from rooftile.report.roof import Limit, limit
from rooftile.report.text import render

__all__ = ["Explanation", "HostRow", "Limit", "explain", "explain_parts", "limit", "render"]
