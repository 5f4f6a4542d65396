"""Images: what the linker makes of objects, and what loading refuses."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooftile.core.errors import NativeError
from rooftile.native import FilePart, Library, assemble, cross_target
from rooftile.native.image import PAGE, pack, unpack
from rooftile.native.jit import bundle
from rooftile.native.static_link import link

X86 = cross_target("x86-64-v2")
here = pytest.mark.skipif(sys.platform != "linux", reason="images load on Linux")
TABLE = """
@counter = global i64 40
@zeros = global [1000 x i64] zeroinitializer
@table = global [2 x ptr] [ptr @counter, ptr @memcpy]
declare ptr @memcpy(ptr, ptr, i64)
declare double @cbrt(double)
declare i64 @other()
define i64 @root() {
  %x = call double @cbrt(double 27.0)
  %y = fptosi double %x to i64
  %n = load i64, ptr @counter
  %o = call i64 @other()
  %s = add i64 %y, %n
  %t = add i64 %s, %o
  store i64 %t, ptr @zeros
  ret i64 %t
}
define ptr @imported() {
  ret ptr @memcpy
}
"""
OTHER = """
@counter = external global i64
define i64 @other() {
  store i64 1, ptr @counter
  ret i64 1000
}
"""
Number = ctypes.CFUNCTYPE(ctypes.c_int64)


def _objects(*texts: str) -> list[bytes]:
    return [assemble(text, X86) for text in texts]


@pytest.fixture(scope="module")
def image() -> bytes:
    return link(_objects(TABLE, OTHER))


def _word(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


@here
def test_calls_variables_externals_and_addresses_in_data(image: bytes) -> None:
    library = Library(image)
    assert Number(library.address("root"))() == 3 + 40 + 1000
    assert _word(library.address("counter")) == 1
    assert [_word(library.address("zeros") + 8 * at) for at in (0, 999)] == [1043, 0]
    assert _word(library.address("table")) == library.address("counter")
    found = ctypes.CFUNCTYPE(ctypes.c_void_p)(library.address("imported"))()
    assert found == _word(library.address("table") + 8)


@here
def test_libraries_of_one_image_have_variables_of_their_own(image: bytes) -> None:
    first, second = Library(image), Library(image)
    Number(first.address("root"))()
    assert _word(second.address("counter")) == 40


@here
def test_code_is_mapped_from_its_file_and_never_writable(image: bytes, tmp_path: Path) -> None:
    path = tmp_path / "code"
    path.write_bytes(b"\0" * PAGE + image)
    with open(path, "rb") as file:
        library = Library(image, FilePart(file.fileno(), PAGE))
    assert Number(library.address("root"))() == 1043
    lines = _maps(library.address("root"))
    assert [line.split()[1] for line in lines] == ["r-xp"]
    assert lines[0].endswith(str(path))
    assert [line.split()[1] for line in _maps(library.address("counter"))] == ["rw-p"]
    assert [line.split()[1] for line in _maps(Library(image).address("other"))] != ["rwxp"]


@here
def test_memory_goes_with_the_library(image: bytes) -> None:
    library = Library(image)
    base = library.address("root")
    del library
    assert not _maps(base) or "r-xp" not in _maps(base)[0]


def _maps(address: int) -> list[str]:
    """The lines of this process's map that hold an address."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    spans = [[int(end, 16) for end in line.split()[0].split("-")] for line in lines]
    return [line for line, (start, end) in zip(lines, spans, strict=True) if start <= address < end]


@here
def test_a_file_that_is_shorter_than_its_code(image: bytes, tmp_path: Path) -> None:
    path = tmp_path / "code"
    path.write_bytes(image[:PAGE])
    with (
        open(path, "rb") as file,
        pytest.raises(NativeError, match="linked code is cut short in its file"),
    ):
        Library(image, FilePart(file.fileno(), 0))


def test_linking_gives_the_same_bytes_again(image: bytes) -> None:
    assert link(_objects(TABLE, OTHER)) == image


def test_what_cannot_be_linked() -> None:
    with pytest.raises(NativeError, match=r"2 objects .* duplicate definition of symbol 'other'"):
        link(_objects(OTHER, OTHER))
    arm = assemble("define i32 @f() {\n  ret i32 0\n}\n", cross_target("aarch64-linux"))
    with pytest.raises(NativeError, match="not recognized as relocatable code for x86-64"):
        link([arm])
    local = "@t = thread_local global i64 0\ndefine ptr @f() {\n  ret ptr @t\n}\n"
    with pytest.raises(NativeError, match="is of a kind that cannot be linked"):
        link(_objects(local))


def test_a_relocation_that_is_not_known_is_named() -> None:
    data = bytearray(assemble(OTHER, X86))
    place = data.index((42).to_bytes(4, "little"), 64)  # REX_GOTPCRELX, as written for @counter
    for kind, name in ((10, "R_X86_64_32"), (99, "number 99")):
        data[place : place + 4] = kind.to_bytes(4, "little")
        with pytest.raises(NativeError, match=f"relocation {name} in section '.text' is not known"):
            link([bytes(data)])


@given(st.data())
def test_damaged_objects_never_crash(data: st.DataObject) -> None:
    sound = _SOUND_OBJECT
    changed = bytearray(sound[: data.draw(st.integers(0, len(sound)))])
    for _ in range(data.draw(st.integers(0, 3)) if changed else 0):
        changed[data.draw(st.integers(0, len(changed) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        unpack(link([bytes(changed)]))
    except NativeError:
        return


@given(st.data())
def test_damaged_images_are_refused_or_stay_inside(data: st.DataObject) -> None:
    sound = _SOUND_IMAGE
    changed = bytearray(sound[: data.draw(st.sampled_from([len(sound), len(sound) - 1, 100]))])
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, min(len(changed), 500) - 1))] ^= 1 << data.draw(
            st.integers(0, 7)
        )
    try:
        image = unpack(bytes(changed))
    except NativeError as error:
        assert "linked code is" in str(error)
        return
    assert all(place <= image.nbytes for place in image.symbols.values())
    for slot in [slot for slot, _ in (*image.externals, *image.relatives)]:
        assert len(image.code) <= slot <= image.nbytes - 8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"externals": [(0, "memcpy")]}, "a slot cannot be right"),
        ({"relatives": [(PAGE, 3 * PAGE)]}, "a place cannot be right"),
        ({"symbols": {"f": PAGE + 9}}, "a place cannot be right"),
        ({"symbols": {"f\0g": 0}}, "its names cannot be right"),
        ({"data_span": 4}, "its size in memory cannot be right"),
        ({"data_span": 1 << 40}, "its size in memory cannot be right"),
        ({"code": b"\0"}, "where its code lies cannot be right"),
    ],
)
def test_images_that_lead_outside(change: dict[str, object], message: str) -> None:
    parts: dict[str, object] = {
        "code": bytes(PAGE),
        "data": bytes(8),
        "data_span": 8,
        "symbols": {"f": 0},
        "externals": [(PAGE, "memcpy")],
        "relatives": [],
    }
    assert unpack(pack(**parts)).symbols == {"f": 0}  # type: ignore[arg-type]
    with pytest.raises(NativeError, match=f"linked code is damaged: {message}"):
        unpack(pack(**(parts | change)))  # type: ignore[arg-type]


def test_code_that_is_not_code() -> None:
    for code in (b"", b"nonsense" * 20, b"RTIMAGE\x02" + bytes(100)):
        with pytest.raises(NativeError, match="code is not recognized, or was made by another"):
            Library(code)
    with pytest.raises(NativeError, match="a bundle of objects is cut short"):
        Library(bundle([b"1234"])[:-1])


def test_objects_in_a_bundle_are_linked_by_llvm() -> None:
    library = Library(bundle(_objects(TABLE, OTHER)))
    assert Number(library.address("root"))() == 1043
    with pytest.raises(NativeError, match="no object of the library defines 'nothing'"):
        library.address("nothing")


_SOUND_OBJECT = _objects(TABLE)[0]
_SOUND_IMAGE = link(_objects(TABLE, OTHER))
