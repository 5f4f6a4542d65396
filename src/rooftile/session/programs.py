"""The compiled programs of a session by the shapes of its inputs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from rooftile.core.errors import RooftileError
from rooftile.native.locks import new_lock
from rooftile.runtime import Template
from rooftile.session.compiled import Compiled
from rooftile.session.guard import check_memory

KEPT_PROGRAMS = 16
"""How many sets of input shapes a session keeps ready; the one used longest ago goes."""

Shapes = tuple[tuple[int, ...], ...]


class Programs:
    """Compiled models by input shapes. Two threads never compile for the same shapes.

    The first shapes compile a program with open dims, and that serves all further shapes for
    which what was assumed of the dims holds. Where dims cannot be left open each set of shapes is
    compiled.
    """

    def __init__(self, make: Callable[[Shapes, bool], Compiled]) -> None:
        """`make` compiles for shapes; dims stay open where its second argument says so."""
        self._make = make
        self._opens = True
        self._templates: list[tuple[Template, Compiled]] = []
        self._kept: OrderedDict[Shapes, Compiled] = OrderedDict()
        self._latest: Compiled | None = None
        """What was found last, which is the last of those kept."""
        self._lock = new_lock()
        self._compiling = new_lock()

    def get(self, shapes: Shapes) -> Compiled:
        """The program for these shapes."""
        found = self.find(shapes)
        if found is not None:
            return found
        with self._compiling:
            found = self.find(shapes)
            if found is None:
                found = self._bound(shapes) or self._made(shapes)
                with self._lock:
                    self._kept[shapes] = self._latest = found
                    if len(self._kept) > KEPT_PROGRAMS:
                        self._kept.popitem(last=False)
            return found

    def find(self, shapes: Shapes) -> Compiled | None:
        """The program for these shapes, if there is one already."""
        found = self._kept.get(shapes)
        if found is not None and found is not self._latest:
            with self._lock:
                if shapes in self._kept:
                    self._kept.move_to_end(shapes)
                    self._latest = found
        return found

    def every(self) -> list[Compiled]:
        """All that are kept."""
        with self._lock:
            return list(self._kept.values())

    def _bound(self, shapes: Shapes) -> Compiled | None:
        """What was compiled with open dims, for these shapes; None where it does not hold."""
        for template, compiled in self._templates:
            executable = template.bind(shapes)
            if executable is not None:
                check_memory(executable.program)
                return Compiled(executable, compiled.journal)
        return None

    def _made(self, shapes: Shapes) -> Compiled:
        if not self._opens:
            return self._make(shapes, False)
        try:
            compiled = self._make(shapes, True)
        except RooftileError:  # that of the program for these shapes alone says more
            self._opens = False
            return self._make(shapes, False)
        if compiled.template is not None:
            self._templates.insert(0, (compiled.template, compiled))
            del self._templates[KEPT_PROGRAMS:]
        elif compiled.journal.of("open"):
            self._opens = False
        return compiled
