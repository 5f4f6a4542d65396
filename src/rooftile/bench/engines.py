"""Adapters: how each engine is opened and called through its public Python API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

Feeds = Mapping[str, Any]
Call = Callable[[], list[Any]]
"""One inference; gives the outputs in the order of the model."""
Opened = tuple[Call, Any]
"""A call, and what the engine calls its session."""


@dataclass(frozen=True)
class Engine:
    """`open(model, feeds, threads)` gives call and session; `precision` is what is asked for."""

    name: str
    precision: str
    open: Callable[[str, Feeds, int], Opened]


def _open_session(module: str) -> Callable[[str, Feeds, int], Opened]:
    """rooftile and onnxruntime: the same calls."""

    def open_it(model: str, feeds: Feeds, threads: int) -> Opened:
        runtime = import_module(module)
        runtime.set_default_logger_severity(4)
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads
        session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return lambda: list(session.run(None, feeds)), session

    return open_it


def _open_openvino(precision: str | None) -> Callable[[str, Feeds, int], Opened]:
    def open_it(model: str, feeds: Feeds, threads: int) -> Opened:
        openvino = import_module("openvino")
        core = openvino.Core()
        graph = core.read_model(model)
        shapes = {name: list(value.shape) for name, value in feeds.items()}
        graph.reshape({name: openvino.PartialShape(shape) for name, shape in shapes.items()})
        config: dict[str, Any] = {
            "INFERENCE_NUM_THREADS": threads,
            "PERFORMANCE_HINT": "LATENCY",
            "NUM_STREAMS": 1,
        }
        if precision is not None:
            config["INFERENCE_PRECISION_HINT"] = precision
        request = core.compile_model(graph, "CPU", config).create_infer_request()
        return lambda: list(request.infer(dict(feeds), share_inputs=True).values()), request

    return open_it


ENGINES = {
    engine.name: engine
    for engine in (
        Engine("rooftile", "as the model says", _open_session("rooftile")),
        Engine("onnxruntime", "as the model says", _open_session("onnxruntime")),
        Engine("openvino_f32", "f32", _open_openvino("f32")),
        Engine("openvino_default", "chosen by openvino", _open_openvino(None)),
    )
}
"""Every engine by the name that it has in results."""

RIVALS = {
    "onnxruntime": ("onnxruntime",),
    "openvino": ("openvino_f32", "openvino_default"),
    "torch": ("torch",),
}
"""What a name of --vs stands for. torch has no adapter: it runs no ONNX files."""


def open_engine(name: str, model: str, feeds: Feeds, threads: int) -> Opened:
    """A call of the engine, and its session; whatever the engine raises goes through."""
    if name not in ENGINES:
        raise ValueError(f"{name} runs no ONNX files")
    return ENGINES[name].open(model, feeds, threads)
