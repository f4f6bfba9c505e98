"""Writes a whole host program as bytes: a head, a row for each callee, and the code of `plan` and of `main`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weft.codegen.backend import Messages
from weft.codegen.launch.host_code import Callee, HostCode
from weft.codegen.launch.instruction_set import HEAD, MAGIC, VERSION, unsigned
from weft.ir import ONE, Expr
from weft.loop import (
    HOST,
    Alloc,
    Buffer,
    Entry,
    For,
    Function,
    Kernel,
    Program,
    Thread,
    external_module,
    find_note,
    space_of,
    verify_host,
)
from weft.support.errors import LoweringError

_AXES = ("blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z")


@dataclass(frozen=True)
class LaunchCode:
    """A host program as bytes; whoever opens them gives the code of the *callees*, pairs of a module and a function, in order."""

    data: bytes
    callees: tuple[tuple[str, str], ...]
    messages: Messages


def write_launch(program: Program, inputs: int, outputs: int) -> LaunchCode:
    """Writes a host program of *inputs* inputs and *outputs* outputs.

    Raises `VerifyError` for one that breaks the rules of host programs, `LoweringError` for one without `plan` or `main`.
    """
    verify_host(program)
    callees = _callees(program)
    written = {kind: HostCode(f, callees) for kind, f in _entries(program).items()}
    code = {kind: w.code() for kind, w in written.items()}
    rows = b"".join([_row(c) for c in callees.values()])
    locals_, slots = [max(w.most[k] for w in written.values()) for k in (0, 1)]
    plan_at = HEAD.size + len(rows)
    main_at = plan_at + len(code["plan"])
    size = main_at + len(code["main"])
    head = HEAD.pack(MAGIC, VERSION, size, inputs, outputs, locals_, slots, len(callees), plan_at, main_at)
    names = tuple([(c.module, c.function.name) for c in callees.values()])
    messages = tuple(sorted(written["plan"].asserts | written["main"].asserts))
    return LaunchCode(b"".join([head, rows, code["plan"], code["main"]]), names, messages)


def _entries(program: Program) -> dict[str, Function]:
    """Returns the entries by their kind."""
    found = {note.kind: f for f in program.functions if (note := find_note(f.notes, Entry)) is not None}
    if sorted(found) != ["main", "plan"]:
        raise LoweringError(
            f"a host program has the entries main and plan, not {', '.join(found) or 'none'}",
            hint='mark functions with @function(entry=("main", (...)))',
        )
    return found


def _callees(program: Program) -> Mapping[str, Callee]:
    """Returns the declared functions by name, numbered in order."""
    declared = [(module, f) for f in program.functions if (module := external_module(f)) is not None]
    spaces = {module: space_of(p) or HOST for module, f in declared for p in f.params if isinstance(p, Buffer)}
    return {f.name: _callee(n, module, spaces.get(module, HOST), f) for n, (module, f) in enumerate(declared)}


def _callee(number: int, module: str, space: int, f: Function) -> Callee:
    is_grid = find_note(f.notes, Kernel) is not None
    if is_grid and space == HOST:
        raise LoweringError(
            f"{f.name} is a grid of threads, but its buffers are in the host's memory",
            hint='declare them in the memory of a device, such as buffer("global@1", f32[n])',
        )
    return Callee(number, module, space, f, _grid(f) if is_grid else None)


def _grid(f: Function) -> tuple[Expr, ...]:
    """Returns the extents of the bound loops at the top of a kernel, in the order of the axes of a grid."""
    extents: dict[str, Expr] = {}
    s = f.body
    while isinstance(s, For | Alloc):
        if isinstance(s, For) and (note := find_note(s.notes, Thread)) is not None:
            extents[note.axis] = s.extent
        s = s.body
    return tuple([extents.get(axis, ONE) for axis in _AXES])


def _row(c: Callee) -> bytes:
    letters = bytes([ord("b" if isinstance(p, Buffer) else "v") for p in c.function.params])
    return unsigned(c.space) + unsigned(len(letters)) + letters
