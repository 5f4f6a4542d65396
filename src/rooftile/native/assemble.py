"""LLVM text to object code or assembly. No IR passes run: the text is what the generator meant.

LLVM is imported by what needs it: a saved program starts without.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

from rooftile.core.errors import InvalidOption, NativeError
from rooftile.native.target import Target

if TYPE_CHECKING:
    import llvmlite.binding as llvm

_PARSE_ERROR = re.compile(r"^<string>:(\d+):\d+: error: (.*)$", re.MULTILINE)


def assemble(text: str, target: Target, level: int = 1) -> bytes:
    """The relocatable object of a module given as LLVM text.

    `level` is LLVM's code generation level, 0 to 3: 1 is as fast at run time as 3. The object is
    position-independent and fits both `Library` and a linker. NativeError quotes LLVM's message
    and the offending line. An intrinsic that the target lacks aborts the process inside LLVM, so
    ask `target.has` before emitting one.
    """
    machine = target_machine(target, level)
    with _parsed(text, machine) as module:
        data: bytes = machine.emit_object(module)
    return data


def assembly(text: str, target: Target, level: int = 1) -> str:
    """The assembly that `assemble` encodes, for people to read."""
    machine = target_machine(target, level)
    with _parsed(text, machine) as module:
        listing: str = machine.emit_assembly(module)
    return listing


@lru_cache(maxsize=16)
def target_machine(target: Target, level: int = 1) -> llvm.TargetMachine:
    """LLVM's code generator for a target; NativeError for a triple that LLVM does not know."""
    import llvmlite.binding as llvm

    if level not in (0, 1, 2, 3):
        raise InvalidOption(f"code generation level {level!r} is not one of 0, 1, 2, 3")
    _initialise()
    try:
        family = llvm.Target.from_triple(target.triple)
    except RuntimeError as error:
        raise NativeError(f"LLVM has no code generator for {target.triple}: {error}") from error
    return family.create_target_machine(
        cpu=target.cpu, features=target.features, opt=level, reloc="pic", codemodel="small"
    )


@lru_cache(maxsize=1)
def _initialise() -> None:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@contextmanager
def _parsed(text: str, machine: llvm.TargetMachine) -> Iterator[llvm.ModuleRef]:
    """The verified module, in a context of its own: types of the global one are never freed."""
    import llvmlite.binding as llvm

    context = llvm.create_context()
    try:
        module = _parse(text, context)
        try:
            _verify(module)
            module.triple = machine.triple
            module.data_layout = str(machine.target_data)
            yield module
        finally:
            # By hand and in this order: a garbage collector may free the context first.
            module.close()
    finally:
        context.close()


def _parse(text: str, context: llvm.ContextRef) -> llvm.ModuleRef:
    import llvmlite.binding as llvm

    try:
        return llvm.parse_assembly(text, context)
    except RuntimeError as error:
        raise NativeError(_explain_parse(text, str(error))) from error


def _verify(module: llvm.ModuleRef) -> None:
    try:
        module.verify()
    except RuntimeError as error:
        raise NativeError(f"LLVM refused a module: {str(error).strip()}") from error


def _explain_parse(text: str, message: str) -> str:
    found = _PARSE_ERROR.search(message)
    if found is None:
        return f"LLVM could not read a module: {message.strip()}"
    number, reason = int(found[1]), found[2]
    lines = text.splitlines()
    line = lines[number - 1].strip() if 0 < number <= len(lines) else "(end of text)"
    return f"LLVM could not read line {number} of a module: {reason}\n  {line}"
