"""Judge the ONNX node tests in processes of their own, so that a crash or a hang is one verdict.

    python tests/conformance/survey.py [PART OF A NAME ...] [--write] [--json FILE]

`--write` makes the list of verdicts, which the tests hold on to and docs/coverage.md is made of.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import subprocess
import sys
from collections import Counter
from dataclasses import astuple
from pathlib import Path

from node_cases import EXPECTED, Verdict, cases, judge, ops_of

MARK = "@verdict "
SECONDS = 60.0


def work(names: list[str]) -> None:
    """Judge the cases in turn; each verdict is printed as soon as it is known."""
    known = cases()
    print(f"{MARK}{json.dumps(None)}", flush=True)
    for name in names:
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        verdict = judge(known[name])
        faulthandler.cancel_dump_traceback_later()
        print(f"\n{MARK}{json.dumps([name, *astuple(verdict)])}", flush=True)


def survey(names: list[str]) -> dict[str, Verdict]:
    """The verdict on each case; a new worker goes on behind the case that ended the last one."""
    found: dict[str, Verdict] = {}
    while left := [name for name in names if name not in found]:
        command = [sys.executable, __file__, "--worker"]
        worker = subprocess.run(
            command, input="\n".join(left), capture_output=True, text=True, errors="replace"
        )
        lines = [line for line in worker.stdout.splitlines() if line.startswith(MARK)]
        if not lines:
            sys.exit(f"the worker does not start: {worker.stderr[-1000:]}")
        for line in lines[1:]:
            name, word, detail, hosted = json.loads(line.removeprefix(MARK))
            found[name] = Verdict(word, detail, tuple(hosted))
        ended = [name for name in left if name not in found]
        if ended:
            why = "hangs" if "Timeout (" in worker.stderr else f"status {worker.returncode}"
            found[ended[0]] = Verdict("crashed", why)
    return found


def write(found: dict[str, Verdict]) -> None:
    """The verdicts as the list beside this file."""
    known, lines = cases(), []
    for name, verdict in sorted(found.items()):
        line = f"{name} {verdict.word} {','.join(ops_of(known[name].model.graph)) or '-'}"
        lines.append(f"{line} host:{','.join(verdict.hosted)}" if verdict.hosted else line)
    EXPECTED.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Survey, print what is not right, and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help="only cases whose name holds one of these")
    parser.add_argument("--write", action="store_true", help=f"write {EXPECTED.name}")
    parser.add_argument("--json", type=Path, help="write all verdicts there")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        work(sys.stdin.read().split())
        return
    names = [n for n in cases() if not args.parts or any(part in n for part in args.parts)]
    found = survey(names)
    for name, verdict in found.items():
        if verdict.word != "right":
            print(f"{verdict.word:8} {name}: {' '.join(verdict.detail.split())}")
    print(dict(Counter(verdict.word for verdict in found.values())))
    if args.json:
        args.json.write_text(json.dumps({n: [v.word, v.detail] for n, v in found.items()}))
    if args.write:
        write(found)


if __name__ == "__main__":
    main()
