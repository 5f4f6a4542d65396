"""The object cache: whole entries only, bounded, harmless where it cannot write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rooftile.core.errors import InvalidOption
from rooftile.native import ObjectCache, build, cache_folder, cross_target, default_cache
from rooftile.native import cache as cache_module
from rooftile.native.cache import object_key, write_atomic

TEXT = "define i32 @f() {\n  ret i32 1\n}\n"
OTHER = "define i32 @g() {\n  ret i32 2\n}\n"
X86 = cross_target("x86-64-v3")


def test_put_and_get(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path / "new" / "folder")
    assert cache.get("a") is None
    cache.put("a", b"code")
    cache.put("b", b"")
    assert cache.get("a") == b"code"
    assert cache.get("b") == b""
    assert ObjectCache(cache.folder).get("a") == b"code"
    assert not [path for path in cache.folder.iterdir() if path.suffix == ".tmp"]


@pytest.mark.parametrize(
    "damage", [lambda raw: raw[:-1], lambda raw: raw[:-1] + b"!", lambda _: b""]
)
def test_a_damaged_entry_is_ignored_and_removed(tmp_path: Path, damage: object) -> None:
    cache = ObjectCache(tmp_path)
    cache.put("a", b"code")
    (path,) = tmp_path.iterdir()
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    assert cache.get("a") is None
    assert not path.exists()


def test_what_was_used_longest_ago_goes_first(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path, limit_bytes=4000)
    for age, key in enumerate("abc"):
        cache.put(key, bytes(1000))
        os.utime(tmp_path / f"{key}.o", (1000 + age, 1000 + age))
    assert cache.get("a") is not None  # used now, so b is the oldest
    cache.put("d", bytes(1000))
    assert cache.get("b") is None
    assert cache.get("a") is not None
    assert cache.get("d") is not None
    assert cache.stats().bytes <= 4000
    cache.put("huge", bytes(5000))
    assert cache.get("huge") is None


def test_the_bound_holds_for_a_folder_that_was_filled_before(tmp_path: Path) -> None:
    roomy = ObjectCache(tmp_path)
    for index in range(10):
        roomy.put(str(index), bytes(1000))
    ObjectCache(tmp_path, limit_bytes=3000).put("new", bytes(1000))
    assert roomy.stats().bytes <= 3000
    assert roomy.get("new") is not None


def test_the_number_of_entries_is_bounded_too(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path, limit_entries=20)
    for index in range(20):
        cache.put(f"old{index}", b"")
        os.utime(tmp_path / f"old{index}.o", (1000 + index, 1000 + index))
    cache.put("new", b"")
    assert cache.stats().entries == 18
    assert cache.get("old2") is None
    assert cache.get("old3") == cache.get("new") == b""


def test_stats_and_clear(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path)
    assert cache.stats() == cache_module.CacheStats(0, 0, tmp_path)
    cache.put("a", b"code")
    (tmp_path / "notes.txt").write_text("not ours")
    assert cache.stats().entries == 1
    assert cache.stats().bytes == (tmp_path / "a.o").stat().st_size
    cache.clear()
    assert cache.stats().entries == 0
    assert (tmp_path / "notes.txt").exists()


def test_a_folder_that_cannot_be_written_is_an_empty_cache(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    cache = ObjectCache(blocked / "objects")
    cache.put("a", b"code")
    assert cache.get("a") is None
    assert cache.stats().entries == 0
    cache.clear()
    assert build([TEXT], X86, cache)


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(cache_module.os, "replace", refuse)
    assert not write_atomic(tmp_path / "a", b"code")
    assert list(tmp_path.iterdir()) == []


def test_entries_that_vanish_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = ObjectCache(tmp_path)
    cache.put("a", b"code")
    (tmp_path / "gone.o").symlink_to(tmp_path / "nowhere")
    assert cache.stats().entries == 1
    monkeypatch.setattr(cache_module.os, "utime", _refuse)
    assert cache.get("a") == b"code"
    monkeypatch.setattr(Path, "unlink", _refuse)
    cache.clear()


def _refuse(*_: object, **__: object) -> None:
    raise PermissionError("read-only")


@pytest.mark.parametrize("key", ["", "../a", "a/b", "a.o"])
def test_keys_stay_in_the_folder(tmp_path: Path, key: str) -> None:
    with pytest.raises(InvalidOption, match=r"must be letters, digits, _ and - only"):
        ObjectCache(tmp_path).get(key)


def test_a_negative_limit(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match=r"cannot be limited to -1 bytes"):
        ObjectCache(tmp_path, limit_bytes=-1)


def test_build_gives_distinct_objects_and_uses_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = ObjectCache(tmp_path)
    first = build([TEXT, OTHER, TEXT], X86, cache)
    assert len(first) == 2
    assert cache.stats().entries == 2

    def never(*_: object) -> bytes:
        raise AssertionError("assembled again")

    monkeypatch.setattr(cache_module, "assemble", never)
    assert build([OTHER, TEXT], X86, cache) == first[::-1]


def test_keys_follow_all_that_decides_the_code() -> None:
    keys = {
        object_key(TEXT, X86),
        object_key(OTHER, X86),
        object_key(TEXT, X86, 2),
        object_key(TEXT, cross_target("x86-64-v2")),
    }
    assert len(keys) == 4
    assert object_key(TEXT, X86) == object_key(TEXT, cross_target("x86-64-v3"))


def test_the_default_cache_follows_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROOFTILE_CACHE", str(tmp_path))
    assert default_cache().folder == tmp_path / "objects"
    build([TEXT], X86)
    assert default_cache().stats().entries == 1
    monkeypatch.delenv("ROOFTILE_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home" / ".cache" / "rooftile"
