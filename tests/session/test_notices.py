"""Options without effect are accepted, and said once."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import fake
import numpy as np
import pytest

import rooftile as rt
from rooftile.session import notices

pytestmark = pytest.mark.usefixtures("pipeline")
X = np.ones(3, np.float32)


@pytest.fixture(autouse=True)
def unsaid(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    monkeypatch.setattr(notices, "_said", set())
    before = notices.LOGGER.level
    caplog.set_level(logging.WARNING, "rooftile")
    yield
    notices.LOGGER.setLevel(before)


def session(options: rt.SessionOptions | None = None, **more: Any) -> rt.InferenceSession:
    return rt.InferenceSession(fake.model([3]), options, **more)


def test_defaults_are_silent(caplog: pytest.LogCaptureFixture) -> None:
    options = rt.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.use_deterministic_compute = True
    options.graph_optimization_level = rt.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.execution_mode = rt.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 2
    for made in (session(), session(options), session(providers=["CPUExecutionProvider"])):
        made.run(None, {"x": X}, rt.RunOptions())
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("inter_op_num_threads", 4, "kernels run one after the other"),
        ("execution_mode", rt.ExecutionMode.ORT_PARALLEL, "kernels run one after the other"),
        ("execution_order", rt.ExecutionOrder.PRIORITY_BASED, "the compiler orders the kernels"),
        ("enable_cpu_mem_arena", False, "memory is planned"),
        ("enable_mem_pattern", False, "memory is planned"),
        ("enable_mem_reuse", False, "memory is planned"),
        ("optimized_model_filepath", "there.onnx", "no such file is written"),
        ("graph_optimization_level", 1, "what lies between counts as the latter"),
        ("some_new_option", 3, "no such option is known"),
    ],
)
def test_each_is_said_once(
    caplog: pytest.LogCaptureFixture, name: str, value: Any, message: str
) -> None:
    options = rt.SessionOptions()
    setattr(options, name, value)
    session(options)
    session(options)
    (said,) = caplog.messages
    assert said.startswith(f"SessionOptions.{name}: ") and message in said


def test_entries_arguments_and_providers_are_said(caplog: pytest.LogCaptureFixture) -> None:
    options = rt.SessionOptions()
    options.add_session_config_entry("session.some", "1")
    cuda, cpu = "CUDAExecutionProvider", "CPUExecutionProvider"
    for _ in range(2):
        session(options, providers=[cuda, cpu], disabled_optimizers=["Fold"], enable_fallback=1)
        session(providers=[cpu], provider_options=[{"a": "b"}])
    assert caplog.messages == [
        f"provider {cuda}: is not there; the model runs on the CPU",
        "argument 'disabled_optimizers' of InferenceSession: has no effect",
        "session config entry 'session.some': has no effect",
        "provider_options: have no effect on the CPU",
    ]


def test_severities_say_what_is_heard(caplog: pytest.LogCaptureFixture) -> None:
    options = rt.SessionOptions()
    options.enable_mem_reuse = False
    options.log_severity_level = 3
    session(options)
    rt.set_default_logger_severity(3)
    options.log_severity_level = 0
    session(options)
    assert caplog.messages == []
    rt.set_default_logger_severity(2)
    rt.set_default_logger_verbosity(1)
    rt.set_seed(3)
    rt.set_seed(4)
    rt.set_global_thread_pool_sizes(1, 1)
    assert [message.split(":")[0] for message in caplog.messages] == [
        "set_seed",
        "set_global_thread_pool_sizes",
    ]


def test_functions_of_the_module() -> None:
    assert rt.get_all_providers() == rt.get_available_providers() == ["CPUExecutionProvider"]
    assert rt.get_device() == "CPU"
    assert rt.get_version_string() in rt.get_build_info()
    rt.preload_dlls(cuda=False)
    rt.disable_telemetry_events()
    rt.enable_telemetry_events()


def test_what_options_refuse() -> None:
    options = rt.SessionOptions()
    with pytest.raises(rt.UnsupportedOp, match=r"ops\.so: libraries of custom ops are made for"):
        options.register_custom_ops_library("ops.so")
    with pytest.raises(rt.InvalidOption, match="2 names for 1 initializers"):
        value = rt.OrtValue.ortvalue_from_numpy(X)
        options.add_external_initializers(["a", "b"], [value])
    with pytest.raises(rt.InvalidOption, match="dim 'DATA_BATCH' cannot have the extent -1"):
        options.add_free_dimension_override_by_denotation("DATA_BATCH", -1)
    with pytest.raises(rt.InvalidOption, match="CUDAExecutionProvider is reserved"):
        options.add_provider("CUDAExecutionProvider", {})
    options.add_provider("CPUExecutionProvider", {})
    assert not options.has_providers()
    with pytest.raises(rt.InvalidOption, match="run options are RunOptions, not str"):
        session().run(None, {"x": X}, "fast")
