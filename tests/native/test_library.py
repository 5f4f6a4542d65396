"""Objects in this process: calls across objects, libm, errors, and dropping."""

from __future__ import annotations

import ctypes
import gc
import math
import threading

import pytest

from rooftile.core.errors import NativeError
from rooftile.native import Library, assemble, host_target, link

CALLER = """
declare double @inner(double)
define double @outer(double %x) {
  %y = call double @inner(double %x)
  %z = call double @helper(double %y)
  ret double %z
}
define internal double @helper(double %x) {
  %y = fmul double %x, 3.0
  ret double %y
}
"""
CALLED = """
declare double @erf(double)
@calls = global i64 0
define double @inner(double %x) {
  %n = load i64, ptr @calls
  %m = add i64 %n, 1
  store i64 %m, ptr @calls
  %y = call double @erf(double %x)
  %z = call double @helper(double %y)
  ret double %z
}
define internal double @helper(double %x) {
  %y = fadd double %x, 1.0
  ret double %y
}
"""
Double = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)


def _code(*texts: str) -> bytes:
    return link([assemble(text, host_target()) for text in texts])


def test_objects_call_one_another_and_libm() -> None:
    library = Library(_code(CALLER, CALLED))
    outer = Double(library.address("outer"))
    assert outer(0.5) == pytest.approx(3 * (math.erf(0.5) + 1))
    assert ctypes.c_int64.from_address(library.address("calls")).value == 1
    assert library.address("outer") == library.address("outer")


def test_two_libraries_may_define_one_name() -> None:
    constant = "define double @outer(double %x) {{\n  ret double {}\n}}\n"
    first, second = (Library(_code(constant.format(value))) for value in ("1.0", "2.0"))
    assert Double(first.address("outer"))(0.0) == 1.0
    assert Double(second.address("outer"))(0.0) == 2.0


def test_dropping_a_library_leaves_others_alone() -> None:
    kept = Library(_code(CALLER, CALLED))
    outer = Double(kept.address("outer"))
    for _ in range(20):
        Library(_code(CALLER, CALLED)).address("outer")
    gc.collect()
    assert outer(0.0) == 3.0


def test_addresses_may_be_asked_for_from_threads() -> None:
    library = Library(_code(CALLER, CALLED))
    found: list[int] = []
    ask = [threading.Thread(target=lambda: found.append(library.address("outer"))) for _ in "1234"]
    for thread in ask:
        thread.start()
    for thread in ask:
        thread.join()
    assert len(found) == 4
    assert len(set(found)) == 1


def test_no_objects_define_nothing() -> None:
    with pytest.raises(NativeError, match=r"no object of the library defines 'f'"):
        Library(link([])).address("f")


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(NativeError, match=r"no object of the library defines 'nothing'"):
        Library(_code(CALLED)).address("nothing")


def test_a_callee_that_is_missing() -> None:
    with pytest.raises(
        NativeError, match=r"calls 'inner', which is missing from the objects and this process"
    ):
        Library(_code(CALLER))


def test_a_name_defined_twice() -> None:
    with pytest.raises(
        NativeError, match=r"2 objects .*: duplicate definition of symbol '(inner|calls)'"
    ):
        _code(CALLED, CALLED)


def test_bytes_that_are_no_object() -> None:
    with pytest.raises(NativeError, match=r"1 objects could not be linked: .*not recognized"):
        link([b"nonsense" * 20])
