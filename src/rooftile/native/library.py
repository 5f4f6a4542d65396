"""Objects linked into this process: one library, symbols by name."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import llvmlite.binding as llvm

from rooftile.core.errors import NativeError
from rooftile.native.assemble import target_machine
from rooftile.native.locks import new_lock
from rooftile.native.target import host_target

LIBRARIES = 32
"""How many libraries share a linker, which takes 100 kB and half a millisecond."""
_names = itertools.count()


class Library:
    """Objects that may call one another, libm and libc, loaded for the life of this value.

    Addresses die with the library: whoever holds one holds the library too.
    """

    def __init__(self, objects: Sequence[bytes]) -> None:
        """Load `objects`; NativeError for broken ones or a symbol that two of them define.

        Code is linked when one of its symbols is first asked for.
        """
        self.name = f"rooftile{next(_names)}"
        self._addresses: dict[str, int] = {}
        self._lock = new_lock()
        self._linker = _linkers.take()
        self._trackers: list[llvm.ResourceTracker] = []
        builder = llvm.JITLibraryBuilder().add_current_process()
        for data in objects:
            builder.add_object_img(data)
        try:
            self._trackers.append(builder.link(self._linker, self.name))
        except RuntimeError as error:
            raise NativeError(
                f"{len(objects)} objects could not be linked: {str(error).removeprefix('In , ')}"
            ) from error

    def address(self, name: str) -> int:
        """The address of a function or global, an integer; NativeError if it is not there."""
        with self._lock:
            found = self._addresses.get(name)
            if found is None:
                found = self._addresses[name] = self._look_up(name)
            return found

    def _look_up(self, name: str) -> int:
        try:
            tracker = self._linker.lookup(self.name, name)
        except RuntimeError as error:
            if "Symbols not found" in str(error):
                raise NativeError(f"no object of the library defines {name!r}") from error
            raise NativeError(
                f"{name!r} could not be linked, something that it calls is missing from the "
                f"objects and from this process: {error}"
            ) from error
        self._trackers.append(tracker)
        address: int = tracker[name]
        return address


class _Linkers:
    """Hands out LLVM's linkers. Each serves `LIBRARIES` libraries and goes when they are gone:
    a linker keeps some kilobytes of every library that it ever had."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._current: llvm.LLJIT | None = None
        self._served = 0

    def take(self) -> llvm.LLJIT:
        """The linker for one library more."""
        with self._lock:
            if self._current is None or self._served == LIBRARIES:
                # JITLink allocates the sections of an object together, so near relocations reach.
                self._current = llvm.create_lljit_compiler(
                    target_machine(host_target()), use_jit_link=True, suppress_errors=True
                )
                self._served = 0
            self._served += 1
            return self._current


_linkers = _Linkers()
