"""OrtValue and IOBinding."""

from __future__ import annotations

import fake
import numpy as np
import pytest

import rooftile as rt

pytestmark = pytest.mark.usefixtures("pipeline")
X = np.arange(3, dtype=np.float32)


def test_ort_value() -> None:
    value = rt.OrtValue.ortvalue_from_numpy(X.copy())
    assert (value.shape(), value.data_type(), value.device_name()) == ([3], "tensor(float)", "cpu")
    assert value.is_tensor() and value.has_value()
    assert value.data_ptr() == value.numpy().ctypes.data
    value.update_inplace(X + 5)
    np.testing.assert_array_equal(np.asarray(value), X + 5)
    assert np.asarray(value, np.float64).dtype == np.float64
    assert not np.shares_memory(np.array(value), value.numpy())
    with pytest.raises(rt.InvalidInput, match=r"the OrtValue is float32\[3\], not int64\[2\]"):
        value.update_inplace(np.array([1, 2]))
    empty = rt.OrtValue.ortvalue_from_shape_and_type([2, 0], np.int64)
    assert (empty.shape(), empty.data_type()) == ([2, 0], "tensor(int64)")
    with pytest.raises(rt.InvalidOption, match="device 'cuda' is reserved"):
        rt.OrtValue.ortvalue_from_numpy(X, "cuda")


def test_run_with_ort_values() -> None:
    session = rt.InferenceSession(fake.model([3]))
    out = session.run_with_ort_values(["y"], {"x": rt.OrtValue.ortvalue_from_numpy(X)})
    np.testing.assert_array_equal(out[0].numpy(), X + 1)


def test_binding_of_arrays_and_values() -> None:
    session = rt.InferenceSession(fake.model(["N"]))
    binding = session.io_binding()
    assert isinstance(binding, rt.IOBinding)
    binding.bind_cpu_input("x", X)
    binding.bind_output("same")
    held = rt.OrtValue.ortvalue_from_shape_and_type([3])
    binding.bind_ortvalue_output("y", held)
    binding.synchronize_inputs()
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    np.testing.assert_array_equal(held.numpy(), X + 1)
    same, y = binding.get_outputs()
    assert y.numpy() is held.numpy()
    np.testing.assert_array_equal(same.numpy(), X + 1)
    binding.bind_ortvalue_input("x", rt.OrtValue.ortvalue_from_numpy(X * 2))
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], X * 2 + 1)


def test_binding_of_addresses() -> None:
    session = rt.InferenceSession(fake.model([3]))
    target = np.zeros(3, np.float32)
    binding = session.io_binding()
    binding.bind_input("x", "cpu", 0, np.float32, [3], X.ctypes.data)
    binding.bind_output("y", "cpu", 0, np.float32, [3], target.ctypes.data)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(target, X + 1)


def test_refused_bindings() -> None:
    session = rt.InferenceSession(fake.model([3]))
    binding = session.io_binding()
    with pytest.raises(rt.InvalidInput, match="no output is bound"):
        session.run_with_iobinding(binding)
    with pytest.raises(rt.InvalidInput, match="output 'y' is bound to memory without a shape"):
        binding.bind_output("y", buffer_ptr=1)
    with pytest.raises(rt.InvalidOption, match="device 'cuda' is reserved"):
        binding.bind_output("y", "cuda")
    binding.bind_cpu_input("x", X)
    binding.bind_ortvalue_output("y", rt.OrtValue.ortvalue_from_shape_and_type([2]))
    with pytest.raises(rt.InvalidInput, match=r"the memory bound to output 'y' is float32\[2\]"):
        session.run_with_iobinding(binding)
    binding.clear_binding_inputs()
    binding.clear_binding_outputs()
    assert binding.get_outputs() == []
    binding.bind_output("y")
    with pytest.raises(rt.InvalidInput, match="missing: 'x'"):
        session.run_with_iobinding(binding)


def test_bound_memory_is_written_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    session = rt.InferenceSession(fake.model(["N"]))
    copied: list[str] = []
    monkeypatch.setattr("rooftile.session.binding.copy_into", lambda *args: copied.append(args[2]))
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_ortvalue_output("y", rt.OrtValue.ortvalue_from_shape_and_type([3]))
    session.run_with_iobinding(binding)
    assert not copied
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], X + 1)


@pytest.mark.parametrize("shift", [0, 1])
def test_memory_of_an_input_may_be_bound_to_an_output(shift: int) -> None:
    session = rt.InferenceSession(fake.model([3]))
    memory = np.arange(4, dtype=np.float32)
    given, target = memory[:3], memory[shift : 3 + shift]
    binding = session.io_binding()
    binding.bind_input("x", "cpu", 0, np.float32, [3], given.ctypes.data)
    binding.bind_output("y", "cpu", 0, 1, [3], target.ctypes.data)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(target, np.arange(3) + 1)


def test_two_outputs_in_one_memory_are_copied_there() -> None:
    session = rt.InferenceSession(fake.model([3]))
    value = rt.OrtValue.ortvalue_from_shape_and_type([3])
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    for name in ("y", "same"):
        binding.bind_ortvalue_output(name, value)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(value.numpy(), X + 1)


def test_memory_that_is_not_dense_is_copied_to() -> None:
    session = rt.InferenceSession(fake.model([3]))
    columns = np.zeros((3, 2), np.float32)
    found = session.run(["y"], {"x": X}, into={"y": columns[:, 0]})
    np.testing.assert_array_equal(found[0], X + 1)
    assert not columns.any()
    dense = np.zeros(3, np.float32)
    assert session.run(["same"], {"x": X}, into={"same": dense})[0] is dense
    np.testing.assert_array_equal(dense, X + 1)


def test_element_types_by_number() -> None:
    value = rt.OrtValue.ortvalue_from_shape_and_type([2], 16)
    assert (value.data_type(), value.element_type()) == ("tensor(bfloat16)", 16)
    assert value.tensor_size_in_bytes() == 4
    bits = np.array([0x3F80, 0xC000], np.uint16)
    taken = rt.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, 16)
    assert taken.numpy().astype(np.float32).tolist() == [1.0, -2.0]
    with pytest.raises(rt.errors.NoTensor, match="uint16 cannot be taken as float32"):
        rt.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, 1)
    with pytest.raises(rt.InvalidOption, match="99 is not the number of an element type"):
        rt.OrtValue.ortvalue_from_shape_and_type([2], 99)
    with pytest.raises(rt.InvalidOption, match="'nothing' is not an element type"):
        rt.OrtValue.ortvalue_from_shape_and_type([2], "nothing")


def test_values_that_are_no_tensors() -> None:
    sequence = rt.OrtValue([X])
    assert sequence.is_tensor_sequence() and not sequence.is_tensor()
    assert sequence.data_type() == "seq(tensor(float))"
    assert not rt.OrtValue(None).has_value() and not sequence.is_sparse_tensor()
    with pytest.raises(rt.errors.NoTensor, match=r"this OrtValue is a seq\(tensor\(float\)\)"):
        sequence.shape()
    np.testing.assert_array_equal(np.from_dlpack(rt.OrtValue.ortvalue_from_numpy(X)), X)


def test_values_hold_what_is_dense_and_native() -> None:
    for array in (X[::-1], X.astype(">f4"), np.asfortranarray(np.ones((2, 3), np.float32))):
        held = rt.OrtValue.ortvalue_from_numpy(array).numpy()
        assert held.flags.c_contiguous and held.dtype.isnative
        np.testing.assert_array_equal(held, array)
    assert rt.OrtValue.ortvalue_from_numpy(X).numpy() is not None
    assert np.shares_memory(rt.OrtValue.ortvalue_from_numpy(X).numpy(), X)
