"""Machines as data: measured roofs, presets, and the machine at hand."""

from rooftile.machine.current import current
from rooftile.machine.model import Machine
from rooftile.machine.preset import preset, presets
from rooftile.machine.probe import peak_flops, peak_kernel, probe

__all__ = ["Machine", "current", "peak_flops", "peak_kernel", "preset", "presets", "probe"]
