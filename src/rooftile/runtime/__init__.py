"""Runs programs: links their objects, holds arena and constants, times steps, saves and loads."""

from rooftile.runtime.container import Saved, load, save
from rooftile.runtime.executable import Executable
from rooftile.runtime.host_call import HostFunction
from rooftile.runtime.template import Template
from rooftile.runtime.traced import run_traced

__all__ = ["Executable", "HostFunction", "Saved", "Template", "load", "run_traced", "save"]
