"""`python -m rooftile`."""

from __future__ import annotations

import sys

from rooftile.cli.main import main

if __name__ == "__main__":  # processes that bench spawns import this module
    sys.exit(main())
