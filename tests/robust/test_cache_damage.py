"""The cache serves right values or none, whatever happened to it."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from pathlib import Path

import pytest
from scripts import run, start

from rooftile.native import cache as cache_module

ONCE = "check(session(1))\nprint('well')\n"
MANY = """
print("begun", flush=True)
for rows in range(1, 200):
    check(session(1, rows), rows)
"""
NO_SPACE = """
import resource
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
check(session(1))
print("well")
"""


def entries(cache: Path) -> list[Path]:
    """All files under a folder."""
    return sorted(path for path in cache.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("filled")
    assert run(ONCE, made) == "well\n"
    assert entries(made)
    return made


@pytest.mark.parametrize("damage", ["flipped", "cut", "emptied"])
def test_each_entry_damaged(filled: Path, tmp_path: Path, damage: str) -> None:
    cache = tmp_path / "cache"
    shutil.copytree(filled, cache)
    for path in entries(cache):
        raw = bytearray(path.read_bytes())
        place = len(raw) // 2
        raw[place] ^= 0x10
        path.write_bytes({"flipped": bytes(raw), "cut": raw[:place], "emptied": b""}[damage])
    assert run(ONCE, cache) == "well\n"
    assert run(ONCE, cache) == "well\n"


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    assert run(ONCE, tmp_path / "file" / "cache") == "well\n"


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may write it")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    assert run(ONCE, tmp_path) == "well\n"
    tmp_path.chmod(0o755)
    assert not entries(tmp_path)


def test_no_space_for_an_entry(tmp_path: Path) -> None:
    assert run(NO_SPACE, tmp_path) == "well\n"
    assert all(path.stat().st_size <= 1000 for path in entries(tmp_path))
    assert not [path for path in entries(tmp_path) if path.suffix == ".tmp"]


@pytest.mark.slow
def test_processes_killed_as_they_write(tmp_path: Path) -> None:
    chance = random.Random(0)
    for _ in range(12):
        process = start(MANY, tmp_path)
        assert process.stdout is not None and process.stdout.readline() == "begun\n"
        time.sleep(chance.uniform(0.0, 0.6))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert run(MANY.replace("200", "40") + "print('well')\n", tmp_path) == "begun\nwell\n"
    for path in entries(tmp_path):
        os.utime(path, (1, 1))
    assert run("check(session(1, 201), 201)\nprint('well')\n", tmp_path) == "well\n"
    assert not [path for path in entries(tmp_path) if path.suffix == ".tmp"]


def test_what_a_killed_writer_left_goes_when_it_is_old(tmp_path: Path) -> None:
    old, new = tmp_path / ".old.tmp", tmp_path / ".new.tmp"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (1, 1))
    cache_module.ObjectCache(tmp_path).put("key", b"code")
    assert not old.exists() and new.exists()
    os.utime(new, (1, 1))
    cache_module.ObjectCache(tmp_path).clear()
    assert not new.exists()
