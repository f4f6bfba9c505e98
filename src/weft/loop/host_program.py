"""Host programs: the subset of flat loop programs that calls kernels, over buffers in the memories of several devices.

    @function(entry=("main", ("in0", "out0", "arena", "in0.0")))
    def main(in0: f32[n * 24], out0: f32[n * 10], arena: u8[n * 256], n: i64):
        t0 = view(arena, 0, f32[n * 32])
        gemm(in0.at(0), t0.at(0), n)
        ...

    @function(external="cpu")
    def gemm(p0: f32[n * 24], p1: f32[n * 32], n: i64):
        pass

Its statements are `Seq`, `Let`, `If`, `While`, `View`, `Alloc`, `Store`, `Assert`, and `Call`s of `COPY` or of functions that are
declared only (`External`). Buffers of scope "global", or "global@0", are in the host's memory; those of scope "global@2" in that
of device 2; an `Alloc` may also be of `late_memory`. A module's functions run where the buffers that they take are. A call of a
`Kernel` is a launch; the grid is that of its bound loops.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NoReturn

from weft.ir import (
    INDEX,
    And,
    Binary,
    Cast,
    Comparison,
    Const,
    Div,
    Expr,
    Neg,
    Not,
    Or,
    Select,
    Var,
    post_order,
)
from weft.loop.buffer import Buffer, late_memory
from weft.loop.intrinsics import COPY
from weft.loop.nodes import (
    NOTHING,
    Address,
    Alloc,
    Assert,
    Call,
    Function,
    If,
    Let,
    Load,
    Program,
    Seq,
    Stmt,
    Store,
    View,
    While,
)
from weft.loop.notes import Entry, External, Kernel, Task, find_note
from weft.loop.printer import excerpt
from weft.loop.verifier import verify
from weft.loop.visit import own_exprs, statements
from weft.support.dtypes import DType, u64
from weft.support.errors import VerifyError

HOST: Final = 0
"""The space of the host's own memory."""

_SCOPE: Final = re.compile(r"global(?:@(0|[1-9]\d{0,2}))?", re.ASCII)
_VALUES: Final = (Const, Var, Cast, Neg, Not, Select)
_STATEMENTS: Final = (Seq, Let, If, While, View, Alloc, Store, Assert, Call)


def space_of(buffer: Buffer) -> int | None:
    """Returns the number of the device in whose memory *buffer* is, 0 for the host's; None for a scope that only kernels have."""
    if late_memory(buffer) is not None:
        return HOST
    found = _SCOPE.fullmatch(buffer.scope)
    return None if found is None else int(found[1] or HOST)


def external_module(function: Function) -> str | None:
    """Returns the module in which the code of a function is that is declared only; None where it is here."""
    note = find_note(function.notes, External)
    return None if note is None else note.module


def is_integer(dtype: DType) -> bool:
    """Answers whether a host program can compute with values of *dtype*: integers and bools, but for `u64`."""
    return dtype.lanes == 1 and (dtype.is_int or dtype.is_bool) and dtype is not u64


def verify_host(program: Program) -> None:
    """Raises `VerifyError` for a program that is no flat loop program, or outside of the subset, naming the statement."""
    verify(program, flat=True)
    declared = {f.name: f for f in program.functions if external_module(f) is not None}
    spaces: dict[str, tuple[int | None, str]] = {}
    for f in declared.values():
        _check_declaration(f, spaces)
    for f in program.functions:
        if f.name not in declared:
            _HostVerifier(f, declared).function()


def _check_declaration(f: Function, spaces: dict[str, tuple[int | None, str]]) -> None:
    """Verifies a function that is declared only, and that it runs in the same space as the others of its module."""
    module = external_module(f)
    assert module is not None

    def fail(message: str) -> NoReturn:
        raise VerifyError(f"{message}\n{excerpt(f, None)}", where=f"in {f.name}")

    if find_note(f.notes, Kernel) is None and f.body != NOTHING:
        fail(f"{f.name} is declared to be in the module {module}, but has a body")
    if any(isinstance(s, Store | Call) for s in statements(f.body)):
        fail(f"{f.name} is declared to be in the module {module}, but its loops do something")
    if find_note(f.notes, Task) is not None or find_note(f.notes, Entry) is not None:
        fail(f"{f.name} is declared only, but is a task or an entry")
    for p in f.params:
        if isinstance(p, Var):
            if p.dtype is not INDEX:
                fail(f"the parameter {p.name} is {p.dtype}: kernels take buffers, and sizes of {INDEX}")
            continue
        if p.dtype.lanes != 1:
            fail(f"the parameter {p.name} is of {p.dtype}: a host program's buffers are of scalars")
        space = space_of(p)
        if space is None:
            fail(f"the parameter {p.name} is in {p.scope} memory, which no host program has")
        known, other = spaces.setdefault(module, (space, f.name))
        if known != space:
            fail(
                f"{p.name} is in space {space}, but {other}, of the same module {module}, takes buffers in space {known}"
            )


class _HostVerifier:
    """Verifies one function of a host program."""

    def __init__(self, function: Function, declared: Mapping[str, Function]) -> None:
        self.f = function
        self.declared = declared
        self.at: Stmt | None = None

    def fail(self, message: str) -> NoReturn:
        """Raises the error, with the function shown around the offending statement."""
        raise VerifyError(f"{message}\n{excerpt(self.f, self.at)}", where=f"in {self.f.name}")

    def require(self, holds: bool, message: str) -> None:
        """Fails unless *holds*."""
        if not holds:
            self.fail(message)

    def function(self) -> None:
        """Verifies the parameters and the body."""
        self.require(find_note(self.f.notes, Entry) is not None, f"{self.f.name} is neither an entry nor declared only")
        for p in self.f.params:
            if isinstance(p, Buffer):
                self.buffer(p)
            else:
                self.require(p.dtype is INDEX, f"the parameter {p.name} is {p.dtype}: a size is {INDEX}")
        for s in statements(self.f.body):
            self.at = s
            self.require(isinstance(s, _STATEMENTS), f"a host program has no {type(s).__name__}")
            if isinstance(s, Call):
                self.call(s)
                continue
            for e in own_exprs(s):
                self.value(e)
            if (check := _CHECKS.get(type(s))) is not None:
                check(self, s)

    def buffer(self, b: Buffer) -> None:
        """Verifies that a buffer of scalars is in the memory of some device, and its size a value."""
        self.require(b.dtype.lanes == 1, f"{b.name} is of {b.dtype}: a host program's buffers are of scalars")
        for size in b.shape:
            self.value(size)
        self.require(space_of(b) is not None, f"{b.name} is in {b.scope} memory, which no host program has")

    def here(self, b: Buffer) -> None:
        """Verifies that the host itself can access the elements of a buffer."""
        self.require(space_of(b) == HOST, f"{b.name} is in the memory of a device: copy what the host needs of it")

    def value(self, root: Expr) -> None:
        """Verifies a value that the host computes."""
        for n in post_order(root):
            if isinstance(n, Load):
                self.here(n.buffer)
                self.require(n.dtype is u64 or is_integer(n.dtype), f"the host does not compute with {n.dtype}")
            elif isinstance(n, Binary):
                self.operator(n)
            elif isinstance(n, _VALUES):
                plain = is_integer(n.dtype) and (not isinstance(n, Neg) or n.dtype is INDEX)
                plain = plain and (not isinstance(n, Not) or n.dtype.is_bool)
                self.require(plain, f"the host does not compute with {n.dtype}")
            else:
                self.fail(f"a host program computes no {type(n).__name__}")

    def operator(self, n: Binary) -> None:
        """Verifies an operator: arithmetic is of sizes, so that no other width has to wrap."""
        taken = n.a.dtype
        if isinstance(n, Comparison):
            self.require(is_integer(taken), f"the host does not compare {taken}")
            return
        fits = taken.is_bool if isinstance(n, And | Or) else taken is INDEX and not isinstance(n, Div)
        self.require(fits, f"the host does not compute `{n.symbol}` of {taken}, only of {INDEX}: cast it")

    def call(self, s: Call) -> None:
        """Verifies a call: its callee, and the space of each buffer that it passes."""
        for a in s.args:
            for e in a.indices if isinstance(a, Address) else (a,):
                self.value(e)
        if s.callee == COPY:
            self.copy(s)
            return
        callee = self.declared.get(s.callee)
        if callee is None:
            self.fail(
                f"a host program calls functions that it declares, with a note of their module: {s.callee} is none"
            )
        for p, a in zip(callee.params, s.args, strict=True):
            if not isinstance(p, Buffer):
                continue
            if not isinstance(a, Address):
                self.fail(f"{s.callee} takes the address of an element for {p.name}")
            wrong = f"{s.callee} takes {p.name} in space {space_of(p)}, but {a.buffer.name} is in space {space_of(a.buffer)}"
            self.require(space_of(p) == space_of(a.buffer), wrong)
            same = p.dtype is a.buffer.dtype
            self.require(same, f"{s.callee} takes {p.dtype} for {p.name}, but {a.buffer.name} is {a.buffer.dtype}")

    def copy(self, s: Call) -> None:
        """Verifies the arguments of a copy."""
        match s.args:
            case (Address(to, _), Address(source, _), count) if count.dtype is INDEX:
                self.require(to.dtype is source.dtype, f"a copy is of one type, not from {source.dtype} to {to.dtype}")
            case _:
                self.fail(f"{COPY} takes two addresses, where to write and where to read, and a number of elements")

    def view(self, s: View) -> None:
        """Verifies that a view stays in the space of its source."""
        self.buffer(s.buffer)
        same = space_of(s.buffer) == space_of(s.source)
        self.require(same, f"the view {s.buffer.name} is in another space than {s.source.name}")

    def alloc(self, s: Alloc) -> None:
        """Verifies memory that is taken."""
        self.buffer(s.buffer)

    def store(self, s: Store) -> None:
        """Verifies a store."""
        self.here(s.buffer)
        self.require(s.mask is None, "a host program stores without a mask")
        self.require(is_integer(s.value.dtype), f"the host does not store {s.value.dtype}")


_CHECKS: Final[dict[type[Stmt], Callable[..., None]]] = {
    View: _HostVerifier.view,
    Alloc: _HostVerifier.alloc,
    Store: _HostVerifier.store,
}
