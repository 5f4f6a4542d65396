"""Sessions on several threads: options, one pool for all of them, explanations."""

from __future__ import annotations

import importlib
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from eager_threads import LINUX, eager
from small_models import feeds_of, models

import rooftile as rt
from rooftile.native.pool import shared_pool
from rooftile.session import notices
from rooftile.session import options as session_options

pytestmark = LINUX
__all__ = ["eager"]


def session(model: Any, threads: int) -> rt.InferenceSession:
    options = rt.SessionOptions()
    options.intra_op_num_threads = threads
    return rt.InferenceSession(model.SerializeToString(), options)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_option_takes_effect(threads: int, eager: None) -> None:
    model = models()["mlp"]
    feeds = feeds_of(model)
    wanted = session(model, 1).run(None, feeds)
    found = session(model, threads)
    for a, b in zip(found.run(None, feeds), wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)
    assert shared_pool().threads >= threads
    facts = found.explanation(feeds)
    assert facts.machine["threads"] == threads
    assert {kernel.schedule["threads"] for kernel in facts.kernels} <= {1, threads}


def test_sessions_of_several_counts_at_once(eager: None) -> None:
    made = [(session(model, n), feeds_of(model)) for n in (1, 2, 3) for model in models().values()]
    wanted = [found.run(None, feeds) for found, feeds in made]
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(5):
                for (found, feeds), want in zip(made, wanted, strict=True):
                    for a, b in zip(found.run(None, feeds), want, strict=True):
                        np.testing.assert_array_equal(a, b)
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert not failures


def test_small_models_need_no_pool(tmp_path: Path) -> None:
    model = models()["mlp"]
    compiled = rt.compile(model, rt.CompileOptions(threads=2))
    assert compiled.program.threads == 1 and compiled.executable.pool is None


def test_the_default_is_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    system = importlib.import_module("rooftile.machine.probe.system")
    monkeypatch.setattr(system, "core_count", lambda: 7)
    assert session_options.compile_options(rt.SessionOptions()).threads == 7
    assert session_options.compile_options(None).threads == 7
    monkeypatch.setattr(system, "core_count", lambda: 500)
    assert session_options.default_threads() == 64
    assert session_options.threads_for(1000) == 64


def test_platforms_without_a_pool(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(session_options, "has_pool", lambda: False)
    monkeypatch.setattr(notices, "_said", set())
    caplog.set_level("WARNING", "rooftile")
    options = rt.SessionOptions()
    assert session_options.compile_options(options).threads == 1
    assert not caplog.records
    options.intra_op_num_threads = 4
    assert session_options.compile_options(options).threads == 1
    assert "kernels run on one thread: several need Linux" in caplog.text
