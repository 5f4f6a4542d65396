"""Explains a compiled model from journal, program, timings and machine."""

from rooftile.report.facts import explain
from rooftile.report.records import Explanation
from rooftile.report.roof import Limit, limit
from rooftile.report.text import render

__all__ = ["Explanation", "Limit", "explain", "limit", "render"]
