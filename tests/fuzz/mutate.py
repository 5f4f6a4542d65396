"""Feed damaged models to rooftile: it may run them or refuse them, and nothing else.

    python tests/fuzz/mutate.py --count 10000 [--start N]

Mutations run in a child process whose address space is limited to 2 GB, each for at most 10 s. A
crash, a hang, or an exception that is no RooftileError is a finding; each has a number that makes
it again (`--start N --count 1`). Exit code 1 where there are findings.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import resource
import subprocess
import sys
import traceback
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

MARK = "@mutation "
SECONDS = 10.0
ADDRESS_SPACE = 2 << 30
MAX_ELEMENTS = 1 << 20
"""Inputs with more elements are not made: the model is then only loaded."""


@dataclass(frozen=True)
class Verdict:
    """`word`: ran, refused, broken (another exception), crashed or hangs."""

    word: str
    detail: str = ""

    @property
    def is_finding(self) -> bool:
        """Whether it must not happen."""
        return self.word not in ("ran", "refused")


def attempt(content: bytes) -> Verdict:
    """Load the model and run it on inputs that fit its signature."""
    import rooftile

    try:
        session = rooftile.InferenceSession(content)
        feeds = {item.name: _value(item) for item in session.get_inputs()}
        if any(isinstance(value, _TooLarge) for value in feeds.values()):
            return Verdict("ran", "loaded only")
        session.run(None, feeds)
    except rooftile.RooftileError as error:
        return Verdict("refused", f"{type(error).__name__}: {error}"[:300])
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}:{last.lineno}"
        return Verdict("broken", f"{type(error).__name__} at {place}: {error}"[:400])
    return Verdict("ran")


class _TooLarge:
    pass


def _value(item: Any) -> Any:
    shape = [dim if isinstance(dim, int) else 2 for dim in item.shape]
    if np.prod([max(1, extent) for extent in shape], dtype=object) > MAX_ELEMENTS:
        return _TooLarge()
    kind = item.type.removeprefix("tensor(").removesuffix(")")
    if item.type.startswith("seq("):
        return [np.ones(2, np.float32)]
    if item.type.startswith("optional("):
        return None
    if kind == "string":
        return np.full(shape, "a", object)
    known = {"float": "float32", "double": "float64", "unknown": "float32"}
    try:
        return np.ones(shape, known.get(kind, kind))
    except (TypeError, ValueError):  # types of ml_dtypes and maps
        return np.ones(shape, np.float32)


def work(start: int, count: int) -> None:
    """Attempt the mutations in turn; each verdict is printed as soon as it is known."""
    from mutations import mutated
    from seeds import seeds

    import rooftile.pipeline  # noqa: F401  (before the limit: what is loaded counts)

    known = seeds()
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    print(f"{MARK}{json.dumps(None)}", flush=True)
    for number in range(start, start + count):
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        verdict = attempt(mutated(known, number))
        faulthandler.cancel_dump_traceback_later()
        print(f"\n{MARK}{json.dumps([number, verdict.word, verdict.detail])}", flush=True)


def fuzz(start: int, count: int) -> dict[int, Verdict]:
    """Verdicts by number; a new child goes on behind the mutation that ended the last one."""
    found: dict[int, Verdict] = {}
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    while len(found) < count:
        first = start + len(found)
        command = [sys.executable, __file__, "--worker", str(first), str(count - len(found))]
        child = subprocess.run(
            command, capture_output=True, text=True, errors="replace", env=environment
        )
        lines = [line for line in child.stdout.splitlines() if line.startswith(MARK)]
        if not lines:
            raise RuntimeError(f"the child does not start: {child.stderr[-2000:]}")
        for line in lines[1:]:
            number, word, detail = json.loads(line.removeprefix(MARK))
            found[number] = Verdict(word, detail)
        if len(found) < count:
            word = "hangs" if "Timeout (" in child.stderr else "crashed"
            found[start + len(found)] = Verdict(word, f"{child.returncode} {child.stderr[-1500:]}")
    return found


def main() -> None:
    """Fuzz, print what was found, and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many mutations")
    parser.add_argument("--start", type=int, default=0, help="the number of the first")
    parser.add_argument("--worker", nargs=2, type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        work(*args.worker)
        return
    found = fuzz(args.start, args.count)
    findings = {number: verdict for number, verdict in found.items() if verdict.is_finding}
    for number, verdict in findings.items():
        print(f"{number} {verdict.word}: {verdict.detail}")
    print(dict(Counter(verdict.word for verdict in found.values())))
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
