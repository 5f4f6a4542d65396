"""What this machine can hold, for whoever refuses what a hostile model asks for."""

from __future__ import annotations

import os
from contextlib import suppress


def machine_bytes() -> int:
    """The memory of this machine in bytes, or what this process may have of it."""
    found = 1 << 62
    with suppress(AttributeError, OSError, ValueError):  # not on every system
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(ImportError, OSError):
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        found = found if limit < 0 else min(found, limit)
    return found
