"""The switch of checked code, and reports that are read from a library."""

from __future__ import annotations

import ctypes

import pytest

from rooftile.core.errors import InvalidOption
from rooftile.native import Library, assemble, host_target, link
from rooftile.native.bounds import SWITCH, Violation, checks_bounds, record_symbol, take_violation

TEXT = """
@"f.bounds" = global { ptr, i64, i64, i64 } zeroinitializer
@text = private constant [10 x i8] c"f reads x\\00"

define i32 @f() {
  store { ptr, i64, i64, i64 } { ptr @text, i64 -4, i64 8, i64 16 }, ptr @"f.bounds"
  ret i32 2
}
"""


@pytest.mark.parametrize(("value", "wanted"), [("", False), ("0", False), ("1", True)])
def test_the_switch(value: str, wanted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, value)
    assert checks_bounds() is wanted


def test_the_switch_is_off_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    assert not checks_bounds()


def test_a_switch_that_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "yes")
    with pytest.raises(InvalidOption, match="ROOFTILE_BOUNDS=yes is not known; set it to 1"):
        checks_bounds()


def test_a_report_is_taken_once() -> None:
    library = Library(link([assemble(TEXT, host_target())]))
    assert record_symbol("f") == "f.bounds"
    assert take_violation(library, "f") is None
    ctypes.CFUNCTYPE(ctypes.c_int32)(library.address("f"))()
    found = take_violation(library, "f")
    assert found == Violation("f reads x", -4, 8, 16)
    assert str(found) == "f reads x: 8 bytes at byte -4 of 16"
    assert take_violation(library, "f") is None


def test_a_library_without_records_reports_nothing() -> None:
    library = Library(link([assemble("define i32 @g() {\n  ret i32 2\n}\n", host_target())]))
    assert take_violation(library, "g") is None
