"""Lifetimes to offsets: numbers in, numbers out."""

from rooftile.memory.pack import pack
from rooftile.memory.packing import Packing, check, lower_bound

__all__ = ["Packing", "check", "lower_bound", "pack"]
