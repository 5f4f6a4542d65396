"""What a session did and when, as a file that chrome://tracing and Perfetto open."""

from __future__ import annotations

import json
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from rooftile.ir.program import HostCall, Launch, Loop, Step
from rooftile.ir.program.records import label
from rooftile.native import NEVER, Stop
from rooftile.native.locks import new_lock
from rooftile.runtime import Executable, run_traced
from rooftile.session.notices import say_once
from rooftile.session.options import SessionOptions
from rooftile.session.providers import CPU

if TYPE_CHECKING:
    from rooftile.session.segment import Interpreted
    from rooftile.session.segmented import ControlRunner, HostRunner

MAX_EVENTS = 1_000_000
"""What comes behind so many is left out: a trace is kept in memory until it is written."""


class Trace:
    """The events of one session. Safe to add to from several threads.

    `start_ns`: when it began, on the monotonic clock. An event is what onnxruntime writes for one:
    category "Node" for kernels and host steps, "Session" for what holds them, times in
    microseconds, arguments with the nodes of the model that a kernel computes (`origin`).
    """

    def __init__(self, prefix: str) -> None:
        self.start_ns = monotonic_ns()
        stamp = datetime.now().strftime("%Y-%m-%d_%H-%M-%S_%f")
        self._path = Path(f"{prefix}_{stamp}.json")
        self._events: list[dict[str, Any]] | None = []
        self._lock = new_lock()

    def add(self, category: str, name: str, began: int, ended: int, **args: Any) -> None:
        """Note what a thread did between two readings of the monotonic clock, in ns."""
        event = {
            "cat": category,
            "pid": os.getpid(),
            "tid": threading.get_native_id(),
            "dur": (ended - began) / 1e3,
            "ts": (began - self.start_ns) / 1e3,
            "ph": "X",
            "name": name,
            "args": args,
        }
        with self._lock:
            if self._events is None:
                return
            if len(self._events) < MAX_EVENTS:
                self._events.append(event)
                return
        say_once("profiling", f"a trace ends after {MAX_EVENTS} events; call end_profiling earlier")

    @contextmanager
    def span(self, category: str, name: str, **args: Any) -> Iterator[None]:
        """Note a block, whether it ends well or not."""
        began = monotonic_ns()
        try:
            yield
        finally:
            self.add(category, name, began, monotonic_ns(), **args)

    def write(self) -> str:
        """Write the file, once, and note nothing more; its name, or "" where it was written."""
        with self._lock:
            events, self._events = self._events, None
        if events is None:
            return ""
        self._path.write_text(
            "[\n" + ",\n".join(json.dumps(event) for event in events) + "\n]\n", encoding="utf-8"
        )
        return str(self._path)

    def execute(
        self,
        executable: Executable | Interpreted,
        values: Sequence[Any],
        stop: Stop = NEVER,
        into: list[Any] | None = None,
    ) -> list[Any]:
        """Run a program, an event for each of its steps."""
        if isinstance(executable, Executable):
            return run_traced(executable, self._note, values, stop, into)
        with self.span("Node", "interpreted_kernel_time", op_name="interpreted", provider=CPU):
            return executable.run(values, stop)

    def follow(self, runner: HostRunner | ControlRunner) -> None:
        """From now on an event for each run of a step on the host."""
        step = runner.step
        args = {"op_name": step.op, "provider": "host", "origin": [step.name]}
        _instead(runner, self._timed(runner.run, "Node", f"{step.name}_kernel_time", **args))

    def follow_session(self, session: Any, whole_runs: bool) -> None:
        """From now on events for the programs of a session, just made, and for its `whole_runs`,
        in a trace that is written when the session goes."""
        session.__dict__["_execute"] = self.execute
        if whole_runs:
            self.add("Session", "session_initialization", self.start_ns, monotonic_ns())
            _instead(session, self._timed(session.run, "Session", "model_run"))
            weakref.finalize(session, self.write)

    def _note(self, index: int, step: Step, began: int, ended: int) -> None:
        on_host = isinstance(step, HostCall)
        args: dict[str, Any] = {"provider": "host" if on_host else CPU, "node_index": str(index)}
        if isinstance(step, (Launch, Loop)):
            facts = step.facts
            args |= {"op_name": "+".join(facts.ops), "origin": list(facts.origin)}
            args |= {"dtype": facts.dtype, "flops": facts.flops}
        else:
            origin = step.origin if isinstance(step, HostCall) else ()
            args |= {"op_name": label(step), "origin": list(origin)}
        self.add("Node", f"{label(step)}_kernel_time", began, ended, **args)

    def _timed(
        self, function: Callable[..., Any], category: str, name: str, **args: Any
    ) -> Callable[..., Any]:
        def timed(*given: Any, **named: Any) -> Any:
            with self.span(category, name, **args):
                return function(*given, **named)

        return timed


def trace_of(options: SessionOptions) -> Trace | None:
    """The trace of a session with these options, begun; None where they ask for none."""
    return Trace(options.profile_file_prefix) if options.enable_profiling else None


def _instead(owner: Any, run: Callable[..., Any]) -> None:
    """Let `owner.run` be another function. What is not traced keeps its method and pays nothing."""
    owner.__dict__["run"] = run
