"""OrtValue: a tensor as onnxruntime hands it about. Here always on the CPU."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rooftile.core.errors import InvalidOption, NoTensor
from rooftile.session.elements import dtype_of, name_of, number_of

Array = npt.NDArray[Any]


class OrtValue:
    """A tensor in CPU memory; or, as the output of a model, a sequence, a map or nothing.

    `held`: the array, list or dict itself.
    """

    def __init__(self, value: Any) -> None:
        self.held = value

    @classmethod
    def ortvalue_from_numpy(
        cls, numpy_obj: Array, device_type: str = "cpu", device_id: int = 0
    ) -> OrtValue:
        """A value that shares the memory of an array, or holds a copy where that is not dense and
        of native byte order. NoTensor for what is no array of numbers."""
        check_device(device_type)
        is_array = isinstance(numpy_obj, np.ndarray)
        if not is_array or numpy_obj.dtype.kind == "O" or not number_of(numpy_obj.dtype):
            raise NoTensor("an OrtValue is made from an array of numbers")
        array = np.asarray(numpy_obj)
        native = array.dtype.newbyteorder("=")
        return cls(np.ascontiguousarray(array, native).reshape(array.shape))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: Array, onnx_element_type: int) -> OrtValue:
        """The same with the bits of an array taken as another type, such as 16, bfloat16."""
        value = cls.ortvalue_from_numpy(data)
        wanted = dtype_of(onnx_element_type)
        if wanted.itemsize != data.dtype.itemsize:
            raise NoTensor(f"{data.dtype} cannot be taken as {wanted}: their sizes differ")
        return cls(value.numpy().view(wanted))

    @classmethod
    def ortvalue_from_shape_and_type(
        cls,
        shape: Sequence[int],
        element_type: npt.DTypeLike | int = np.float32,
        device_type: str = "cpu",
        device_id: int = 0,
    ) -> OrtValue:
        """A value of undefined content. The type may be the number of one of ONNX."""
        check_device(device_type)
        return cls(np.empty(tuple(shape), dtype_of(element_type)))

    def numpy(self) -> Array:
        """The array itself, not a copy; NoTensor for what is no tensor."""
        if not isinstance(self.held, np.ndarray):
            raise NoTensor(f"this OrtValue is a {self.data_type()}, no tensor")
        return self.held

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        array = self.numpy() if dtype is None else self.numpy().astype(dtype, copy=False)
        return array.copy() if copy else array

    def __dlpack__(self, **options: Any) -> Any:
        return self.numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = self.numpy().__dlpack_device__()
        return int(kind), int(number)

    def shape(self) -> list[int]:
        """Its extents."""
        return list(self.numpy().shape)

    def data_type(self) -> str:
        """As onnxruntime writes it: "tensor(float)"."""
        return _type_of(self.held)

    def element_type(self) -> int:
        """The number of its element type in ONNX."""
        return number_of(self.numpy().dtype)

    def tensor_size_in_bytes(self) -> int:
        """Its bytes."""
        return self.numpy().nbytes

    def device_name(self) -> str:
        """Where it lies."""
        return "cpu"

    def data_ptr(self) -> int:
        """The address of its first element."""
        return int(self.numpy().ctypes.data)

    def is_tensor(self) -> bool:
        """Whether it is a tensor."""
        return isinstance(self.held, np.ndarray)

    def is_tensor_sequence(self) -> bool:
        """Whether it is a sequence of tensors."""
        return isinstance(self.held, list)

    def is_sparse_tensor(self) -> bool:
        """Never: sparse tensors are not handed about."""
        return False

    def has_value(self) -> bool:
        """Whether there is anything: an optional may be empty."""
        return self.held is not None

    def update_inplace(self, np_arr: Array) -> None:
        """Copy an array of the same shape and type into it; NoTensor for another."""
        copy_into(self.numpy(), np_arr, "the OrtValue")


def plain(value: Any) -> Any:
    """What an OrtValue holds; anything else as it is."""
    return value.held if isinstance(value, OrtValue) else value


def check_device(device_type: str) -> None:
    """InvalidOption for anything but the CPU."""
    if device_type.lower() != "cpu":
        raise InvalidOption(f"device {device_type!r} is reserved; this version knows 'cpu' only")


def copy_into(target: Array, array: Array, name: str) -> None:
    """Copy values; NoTensor, naming the target, where shape or type differ."""
    given = np.asarray(array)
    if given.shape != target.shape or given.dtype != target.dtype:
        raise NoTensor(
            f"{name} is {target.dtype}{list(target.shape)}, not {given.dtype}{list(given.shape)}"
        )
    target[...] = given


def at_address(address: int, shape: Sequence[int], element_type: npt.DTypeLike | int) -> Array:
    """The array that lies at an address of this process; its owner must keep it alive."""
    found = dtype_of(element_type)
    count = int(np.prod(shape, dtype=np.int64)) * found.itemsize
    memory = (ctypes.c_ubyte * count).from_address(address)
    array: Array = np.ctypeslib.as_array(memory).view(found)
    return array.reshape(tuple(shape))


def _type_of(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"tensor({name_of(value.dtype)})"
    if isinstance(value, list):
        inner = _type_of(value[0]) if value else "tensor(float)"
        return f"seq({inner})"
    return type(value).__name__
