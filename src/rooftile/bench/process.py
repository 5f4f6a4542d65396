"""The parent's end of an engine's process."""

from __future__ import annotations

import os
import subprocess
import sys
from multiprocessing import Pipe
from typing import Any

from rooftile.bench.engines import Feeds
from rooftile.core.errors import RooftileError

ANSWER_S = 300.0


class EngineFailed(RooftileError):
    """An engine could not run a model, died, or did not answer; the message has its own words."""


class EngineProcess:
    """An engine that has opened a model and run once, in a process of its own."""

    def __init__(
        self, name: str, model: str, feeds: Feeds, threads: int, answer_s: float = ANSWER_S
    ) -> None:
        """EngineFailed where the engine cannot."""
        self.name = name
        self._answer_s = answer_s
        self._pipe, theirs = Pipe()
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "rooftile.bench.worker", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        theirs.close()
        try:
            request = {"name": name, "model": model, "feeds": dict(feeds), "threads": threads}
            started = self._ask(request)
        except EngineFailed:
            self.close()
            raise
        self.load_ms = float(started["load_ms"])
        self.first_run_ms = float(started["first_run_ms"])

    def values(self) -> list[Any]:
        """The outputs of one call."""
        return list(self._ask("values")["values"])

    def block(self) -> list[float]:
        """Seconds of each call of one block."""
        return list(self._ask("block")["seconds"])

    def rss_mb(self) -> float:
        """The most memory held so far, in MB."""
        return float(self._ask("rss")["rss_mb"])

    def facts(self) -> dict[str, Any]:
        """What rooftile's session tells of its programs; {} for other engines."""
        return self._ask("facts") if self.name == "rooftile" else {}

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._pipe.close()

    def _ask(self, message: Any) -> dict[str, Any]:
        try:
            self._pipe.send(message)
            if not self._pipe.poll(self._answer_s):
                raise EngineFailed(f"no answer in {self._answer_s:.0f} s")
            answer: dict[str, Any] = self._pipe.recv()
        except (EOFError, OSError):
            self._process.wait()
            raise EngineFailed(f"its process died (exit {self._process.returncode})") from None
        if "failed" in answer:
            raise EngineFailed(answer["failed"])
        return answer
