"""Writes the statements of one function of a host program as instructions.

    t0 = view(arena, 64, f32[32])          CONST 64; CONST 128; VIEW 3 2
    gemm(in0.at(0), t0.at(0), n)           CONST 0; CONST 96; BUFFER 0; CONST 0; CONST 128; BUFFER 3; GET 0; VALUE; CALL 0

Slots and locals are given out as a stack: those of a view or a `let` are free again where its body ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from weft.codegen import abi
from weft.codegen.launch.instruction_set import CONTEXT, Op, Word, instruction
from weft.codegen.launch.value_code import chosen, value_code
from weft.ir import Expr, Var, simplify, substitute
from weft.loop import (
    COPY,
    HOST,
    Address,
    Alloc,
    Assert,
    Buffer,
    Call,
    Entry,
    Function,
    If,
    LateMemory,
    Let,
    Seq,
    Stmt,
    Store,
    Twins,
    View,
    While,
    find_note,
    late_memory,
    space_of,
)
from weft.support.errors import LoweringError

_WORD: Final = re.compile(r"(in|out)(\d+)(?:\.(shape|\d+))?$")
_TENSORS: Final = {
    ("in", None): Word.IN,
    ("out", None): Word.OUT,
    ("in", "shape"): Word.IN_SHAPE,
    ("out", "shape"): Word.OUT_SHAPE,
}
_FIELDS: Final = {
    "arena": Word.ARENA,
    "constants": Word.CONSTANTS,
    "outside": Word.OUTSIDE,
    "arena_needed": Word.ARENA_NEEDED,
}


@dataclass(frozen=True)
class Callee:
    """A declared function: its number, its module, its space, its parameters, and, of a launch, the grid in terms of them."""

    number: int
    module: str
    space: int
    function: Function
    grid: tuple[Expr, ...] | None


class HostCode:
    """Writes a function, and counts the locals and the slots that it needs, and the messages of its checks."""

    def __init__(self, function: Function, callees: Mapping[str, Callee]) -> None:
        self.function = function
        self.callees = callees
        self.locals: dict[Var, int] = {}
        self.slots: dict[Buffer, int] = {}
        self.in_use = [0, 0]  # locals, slots
        self.most = [0, 0]
        self.asserts: set[tuple[int, str]] = set()
        self.twins = _twins(function)

    def code(self) -> bytes:
        """Returns the code of the whole function."""
        return b"".join([*self._parameters(), self.statement(self.function.body), instruction(Op.END)])

    def local(self, var: Var) -> int:
        """Returns the local of a variable."""
        return self.locals[var]

    def slot(self, buffer: Buffer) -> int:
        """Returns the slot of a buffer."""
        return self.slots[buffer]

    def fresh_local(self) -> int:
        """Returns a local that nothing else uses until the current statement is done."""
        return self._take(0)

    def fresh_slot(self) -> int:
        """Returns a slot that nothing else uses until the current statement is done."""
        return self._take(1)

    def _take(self, kind: int) -> int:
        made = self.in_use[kind]
        self.in_use[kind] += 1
        self.most[kind] = max(self.most[kind], self.in_use[kind])
        return made

    @contextmanager
    def _scope(self) -> Iterator[None]:
        """Gives back at its end the locals and slots that are taken inside."""
        before = list(self.in_use)
        yield
        self.in_use = before

    def _parameters(self) -> Iterator[bytes]:
        """Yields code that binds the parameters to the entry's arguments."""
        note = find_note(self.function.notes, Entry)
        words = () if note is None else note.args
        if len(words) != len(self.function.params):
            raise self.error(f"{len(self.function.params)} parameters are described by {len(words)} words: {words}")
        for word, p in zip(words, self.function.params, strict=True):
            if isinstance(p, Buffer):
                where = self.slots[p] = self.fresh_slot()
                yield instruction(Op.BIND, where, *self._memory(word))
            else:
                where = self.locals[p] = self.fresh_local()
                yield self._number(word) + instruction(Op.SET, where)

    def _memory(self, word: str) -> tuple[int, int]:
        name, _, space = word.partition("@")
        if word in _FIELDS or (name == "constants" and space.isdigit()):
            return _FIELDS[name], int(space or HOST)
        match = _WORD.match(word)
        if match is None or (match[1], match[3]) not in _TENSORS:
            raise self.error(f"the entry argument {word!r} is no buffer")
        return _TENSORS[match[1], match[3]], int(match[2])

    def _number(self, word: str) -> bytes:
        if word in CONTEXT:
            return instruction(Op.CONTEXT, CONTEXT[word])
        match = _WORD.match(word)
        if match is None or match[3] in (None, "shape"):
            raise self.error(f"the entry argument {word!r} is no number")
        return instruction(Op.SIZE, Word.IN if match[1] == "in" else Word.OUT, int(match[2]), int(match[3]))

    def error(self, message: str) -> LoweringError:
        """Returns an error about this function."""
        return LoweringError(message, where=self.function.name, hint="see codegen.entry_spec and loop.host_program")

    def value(self, e: Expr) -> bytes:
        """Returns the code of a value."""
        return value_code(e, self)

    def bytes_of(self, elements: Expr, buffer: Buffer) -> bytes:
        """Returns the code of the number of bytes of *elements* of a buffer."""
        return self.value(simplify(elements * buffer.dtype.bytes))

    def statement(self, s: Stmt) -> bytes:
        """Returns the code of a statement; the bindings at the end of a suite, of which there may be many, do not nest."""
        parts: list[bytes] = []
        after: list[bytes] = []
        with self._scope():
            while True:
                if isinstance(s, Let | View | Alloc):
                    parts.append(_BINDINGS[type(s)](self, s))
                    after += [instruction(Op.FREE)] if isinstance(s, Alloc) and late_memory(s.buffer) is None else []
                    s = s.body
                elif isinstance(s, Seq) and s.body:
                    parts += [self.statement(x) for x in s.body[:-1]]
                    s = s.body[-1]
                else:
                    if not isinstance(s, Seq):
                        parts.append(self._other(s))
                    return b"".join([*parts, *reversed(after)])

    def _other(self, s: Stmt) -> bytes:
        write = _STATEMENTS.get(type(s))
        if write is None:
            raise self.error(f"a host program has no {type(s).__name__}")
        return write(self, s)


def _twins(function: Function) -> dict[str, Buffer]:
    """Returns the parameters whose memory buffers may have, by the names of these."""
    note = find_note(function.notes, Twins)
    params = {p.name: p for p in function.params if isinstance(p, Buffer)}
    return {} if note is None else {n: params[p] for n, p in zip(note.names, note.params, strict=True)}


def _let(f: HostCode, s: Let) -> bytes:
    value = f.value(s.value)
    f.locals[s.var] = f.fresh_local()
    return value + instruction(Op.SET, f.locals[s.var])


def _view(f: HostCode, s: View) -> bytes:
    at, size = f.bytes_of(s.offset, s.source), f.bytes_of(s.buffer.shape[0], s.buffer)
    source = f.slot(s.source)
    f.slots[s.buffer] = f.fresh_slot()
    return at + size + instruction(Op.VIEW, f.slots[s.buffer], source)


def _alloc(f: HostCode, s: Alloc) -> bytes:
    if (late := late_memory(s.buffer)) is not None:
        return _ask(f, s.buffer, late)
    size = f.bytes_of(s.buffer.shape[0], s.buffer)
    f.slots[s.buffer] = f.fresh_slot()
    space = space_of(s.buffer) or HOST
    if (tensor := f.twins.get(s.buffer.name)) is not None:
        return size + instruction(Op.TWIN, f.slots[s.buffer], space, f.slot(tensor))
    return size + instruction(Op.ALLOC, f.slots[s.buffer], space)


def _ask(f: HostCode, buffer: Buffer, late: LateMemory) -> bytes:
    """Returns the code that asks for late memory."""
    if late.is_kept:
        size = f.bytes_of(buffer.shape[0], buffer)
        f.slots[buffer] = f.fresh_slot()
        return size + instruction(Op.KEEP, f.slots[buffer], late.number)
    sizes = b"".join([f.value(s) for s in buffer.shape])
    f.slots[buffer] = f.fresh_slot()
    return sizes + instruction(Op.OUTPUT, f.slots[buffer], late.number, buffer.rank)


_BINDINGS: Final[dict[type[Stmt], Callable[[HostCode, Any], bytes]]] = {Let: _let, View: _view, Alloc: _alloc}


def _store(f: HostCode, s: Store) -> bytes:
    return f.value(s.indices[0]) + f.value(s.value) + instruction(Op.STORE, f.slot(s.buffer), s.buffer.dtype.code)


def _if(f: HostCode, s: If) -> bytes:
    return chosen(f.value(s.cond), f.statement(s.then), b"" if s.other is None else f.statement(s.other))


def _while(f: HostCode, s: While) -> bytes:
    """Returns the code of a loop, whose last instruction goes back over itself, the body and the condition."""
    cond, body, back = f.value(s.cond), f.statement(s.body), b""
    while True:  # the operands tell how long the code is that they are in
        made = chosen(cond, body + back, b"")
        found = instruction(Op.BACK, len(made))
        if found == back:
            return made
        back = found


def _assert(f: HostCode, s: Assert) -> bytes:
    number = abi.assert_id(s.message)
    f.asserts.add((number, s.message))
    shown = s.values[: abi.DETAILS]
    failed = b"".join([f.value(v) for v in shown]) + instruction(Op.FAIL, number, len(shown))
    return chosen(f.value(~s.cond), failed, b"")


def _call(f: HostCode, s: Call) -> bytes:
    if s.callee == COPY:
        return _copy(f, s)
    callee = f.callees[s.callee]
    params = callee.function.params
    given: dict[Var, Expr] = {p: a for p, a in zip(params, s.args, strict=True) if isinstance(p, Var)}
    parts: list[bytes] = []
    for p, a in zip(params, s.args, strict=True):
        if isinstance(p, Buffer) and isinstance(a, Address):
            taken = f.bytes_of(substitute(p.shape[0], given), p)
            parts.append(f.bytes_of(a.indices[0], a.buffer) + taken + instruction(Op.BUFFER, f.slot(a.buffer)))
        else:
            parts.append(f.value(a) + instruction(Op.VALUE))
    if callee.grid is None:
        return b"".join(parts) + instruction(Op.CALL, callee.number)
    parts += [f.value(substitute(e, given)) for e in callee.grid]
    return b"".join(parts) + instruction(Op.LAUNCH, callee.number)


def _copy(f: HostCode, s: Call) -> bytes:
    match s.args:
        case (Address(to, (at,)), Address(source, (begin,)), count):
            sizes = f.bytes_of(at, to) + f.bytes_of(begin, source) + f.bytes_of(count, to)
            return sizes + instruction(Op.COPY, f.slot(to), f.slot(source))
    raise f.error(f"{COPY} takes two addresses, where to write and where to read, and a number of elements")


_STATEMENTS: Final[dict[type[Stmt], Callable[[HostCode, Any], bytes]]] = {
    Store: _store,
    If: _if,
    While: _while,
    Assert: _assert,
    Call: _call,
}
