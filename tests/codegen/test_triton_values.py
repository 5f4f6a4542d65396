"""Values of generated Triton kernels in Triton's interpreter, against the tile interpreter."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("triton_host.py")
BOUNDS = {
    "attention_f16": 2e-3,
    "half": 2e-2,
    "softmax_bf16": 4e-3,
    "attention_online": 2e-4,
    "within": 1e-12,
    "bytes": 0.0,
    "gather": 0.0,
}
CASES = [
    "matmul",
    "softmax",
    "softmax_nan",
    "softmax_bf16",
    "depthwise",
    "depthwise_halo",
    "attention",
    "attention_f16",
    "attention_online",
    "conv_pixels",
    "recurrence",
    "integers",
    "swap",
    "within",
    "bytes",
    "gather",
    "batch",
    "half",
    "plain",
    "gather_faults",
]


@pytest.fixture(scope="module")
def results() -> dict[str, float | str]:
    pytest.importorskip("triton")
    run = [sys.executable, str(PROGRAM)]
    done = subprocess.run(run, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    found: dict[str, float | str] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_every_case_is_listed(results: dict[str, float | str]) -> None:
    assert sorted(results) == sorted(CASES)


@pytest.mark.parametrize("case", CASES)
def test_values(case: str, results: dict[str, float | str]) -> None:
    found = results[case]
    assert isinstance(found, float), found
    assert found <= BOUNDS.get(case, 1e-5)
