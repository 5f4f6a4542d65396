"""Damaged models: each runs or is refused clearly, and the fuzzer tells what does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import mutate
import pytest
from mutations import mutated
from seeds import seeds

import rooftile

MUTATE = Path(__file__).with_name("mutate.py")


def test_damaged_models_run_or_are_refused() -> None:
    command = [sys.executable, str(MUTATE), "--count", "100", "--start", "5000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "'ran':" in done.stdout and "'refused':" in done.stdout


def test_each_number_makes_its_own_damage_again() -> None:
    known = seeds()
    assert all(len(seed) <= 50_000 for seed in known) and len(known) > 1000
    made = [mutated(known, number) for number in range(50)]
    assert made == [mutated(known, number) for number in range(50)]
    assert len(set(made)) > 45


@pytest.mark.parametrize(
    ("error", "word"),
    [(rooftile.InvalidModel("no"), "refused"), (KeyError("k"), "broken"), (None, "ran")],
)
def test_what_the_fuzzer_says(
    monkeypatch: pytest.MonkeyPatch, error: Exception | None, word: str
) -> None:
    class Session:
        def __init__(self, content: bytes) -> None:
            if error is not None:
                raise error

        def get_inputs(self) -> list[object]:
            return []

        def run(self, names: object, feeds: object) -> list[object]:
            return []

    monkeypatch.setattr(rooftile, "InferenceSession", Session)
    verdict = mutate.attempt(b"")
    assert verdict.word == word
    assert verdict.is_finding == (word == "broken")
