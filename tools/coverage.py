"""docs/coverage.md: every op of ONNX, and how rooftile runs it.

    python tools/coverage.py            writes it
    python tools/coverage.py --check    fails where it is not what would be written

How an op is run is asked of the registries of readers and of host bodies. What was measured are the
node cases of ONNX: tests/conformance/node_cases.txt, which `tests/conformance/survey.py --write`
makes. The ops are those of the schemas of the onnx that is installed, and what else is read.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx
from onnx import defs

import rooftile.frontends.onnx  # noqa: F401  (registers every reader)
from rooftile.frontends.onnx.functions import has_function
from rooftile.frontends.onnx.registry import find, known
from rooftile.frontends.onnx.segments import BY_FORM, CONTROL, OF_THE_RUN
from rooftile.host import BODIES

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "coverage.md"
CASES = ROOT / "tests" / "conformance" / "node_cases.txt"
KNOWN = ":known"
"""What ends the names of cases that ONNX does not ship: ours with inputs made constants."""
NEWEST = 1 << 30
COMPILED, BODY, HOST, MISSING = "compiled", "compiled as its ONNX function", "host", "missing"

HEAD = """# Which ops run, and how

Made by `python tools/coverage.py` from the registries of the code and from ONNX's own node cases;
do not edit. `--check` fails where this page is stale.

- **compiled**: the op becomes part of kernels. *Host where ...* names the forms that do not.
- **compiled as its ONNX function**: the body in the op's schema is compiled.
- **host**: numpy computes it between compiled parts, and the report of the session says so.
- **missing**: a model with it is refused by name before anything runs.

`versions` counts the forms of the op through the opsets, and how many of them are read. `cases`
counts ONNX's node cases with the op in them that give the right answer; `with host` those in which
this op ran on the host. A session's own answer is `session.decisions`: those of stage `host`.
"""


@dataclass(frozen=True)
class Case:
    """A line of the list of node cases."""

    name: str
    word: str
    ops: tuple[str, ...]
    hosted: tuple[str, ...] = ()

    @property
    def right(self) -> bool:
        """Whether the answer is right."""
        return self.word == "right"


@dataclass(frozen=True)
class Row:
    """An op: how it runs, why partly on the host, its versions, and those that are read."""

    domain: str
    op: str
    how: str
    why: str
    versions: tuple[int, ...]
    read: int
    deprecated: bool

    @property
    def key(self) -> str:
        """The op as the list of cases names it."""
        return f"{self.domain}.{self.op}" if self.domain else self.op


def cases_of(text: str) -> list[Case]:
    """The cases that ONNX ships."""
    found = []
    for line in text.splitlines():
        name, word, ops, *hosted = line.split()
        if not name.endswith(KNOWN):
            mine = hosted[0].removeprefix("host:").split(",") if hosted else ()
            found.append(Case(name, word, tuple(ops.split(",")), tuple(mine)))
    return found


def rows() -> list[Row]:
    """Every op of ONNX's schemas, and every other that is read, by domain and name."""
    versions: dict[tuple[str, str], set[int]] = {}
    for schema in defs.get_all_schemas_with_history():
        versions.setdefault((schema.domain, schema.name), set()).add(schema.since_version)
    for key in (*known(), *BODIES):
        versions.setdefault(key, {1})
    return [_row(domain, op, sorted(versions[domain, op])) for domain, op in sorted(versions)]


def _row(domain: str, op: str, versions: Sequence[int]) -> Row:
    ways = [way(domain, op, version) for version in versions]
    how, why = way(domain, op, NEWEST)
    if how == MISSING:  # deprecated ops may run in their older forms
        how, why = next((item for item in reversed(ways) if item[0] != MISSING), (how, why))
    read = sum(item[0] != MISSING for item in ways)
    return Row(domain, op, how, why, tuple(versions), read, _deprecated(domain, op))


def way(domain: str, op: str, opset: int) -> tuple[str, str]:
    """How the op runs in a model of an opset, and what puts it, or some forms, on the host."""
    body = BODIES.get((domain, op))
    control = op in CONTROL and not domain
    why = OF_THE_RUN if control else (body.why or BY_FORM) if body else ""
    if op != "SequenceMap" and find(domain, op, opset) is not None:
        return COMPILED, why
    if control or body:
        return HOST, why
    return (BODY if has_function(domain, op, opset) else MISSING), ""


def _deprecated(domain: str, op: str) -> bool:
    return defs.has(op, domain) and bool(defs.get_schema(op, domain).deprecated)


def page() -> str:
    """The text of the page."""
    cases, table = cases_of(CASES.read_text(encoding="utf-8")), rows()
    parts = [HEAD, *_summary(table, cases)]
    for domain in dict.fromkeys(row.domain for row in table):
        mine = [row for row in table if row.domain == domain]
        parts += [f"\n## {domain or 'ai.onnx'}\n", "| op | how | versions | cases | with host |"]
        parts += ["|---|---|---|---|---|", *(_line(row, cases) for row in mine)]
    return "\n".join(parts) + "\n"


def _summary(table: Sequence[Row], cases: Sequence[Case]) -> Iterator[str]:
    standard = [row for row in table if defs.has(row.op, row.domain)]
    counts = [f"{sum(row.how == how for row in standard)} {how}" for how in (COMPILED, BODY, HOST)]
    missing = [row.op for row in standard if row.how == MISSING]
    yield "| | |\n|---|---|"
    yield f"| onnx | {onnx.__version__} |"
    yield f"| ops in its schemas | {len(standard)}: {', '.join(counts)}, {_named(missing)} |"
    yield f"| other ops that are read | {len(table) - len(standard)} |"
    versions, read = sum(len(row.versions) for row in standard), sum(row.read for row in standard)
    yield f"| versions of the ops | {read:,} of {versions:,} |"
    newest = [f"{name or 'ai.onnx'} 1 to {last}" for name, last in _opsets(standard)]
    yield f"| opsets | {', '.join(newest)} |"
    right = [case for case in cases if case.right]
    yield f"| node cases that are right | {_share(len(right), len(cases))} |"
    native = [case for case in right if not case.hosted]
    yield f"| of these without a step on the host | {_share(len(native), len(right))} |"


def _named(missing: Sequence[str]) -> str:
    return f"{len(missing)} missing ({', '.join(missing)})" if missing else "none missing"


def _opsets(table: Iterable[Row]) -> list[tuple[str, int]]:
    """The domains, each with its newest opset."""
    newest: dict[str, int] = {}
    for row in table:
        newest[row.domain] = max(newest.get(row.domain, 0), *row.versions)
    return sorted(newest.items())


def _share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} ({100 * part / whole:.1f} %)"


def _line(row: Row, cases: Sequence[Case]) -> str:
    mine = [case for case in cases if row.key in case.ops]
    right = sum(case.right for case in mine)
    hosted = sum(row.op in case.hosted for case in mine)
    how = row.how
    if row.why:
        how += f"; host where {row.why}" if row.how == COMPILED else f": {row.why}"
    name = f"{row.op} (deprecated)" if row.deprecated else row.op
    versions = f"{row.read} of {len(row.versions)}" if row.read < len(row.versions) else row.read
    shown = f"{right} of {len(mine)}" if right < len(mine) else len(mine) or ""
    return f"| {name} | {how} | {versions} | {shown} | {hosted or ''} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail where the page is stale")
    if not parser.parse_args(arguments).check:
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == page():
        return 0
    print(f"{PAGE.relative_to(ROOT)} is stale: run python tools/coverage.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
