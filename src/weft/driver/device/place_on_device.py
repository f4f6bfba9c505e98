"""Moves the data of a host program to the memory of a device, in which its kernels run.

    def main(in0, out0, arena, constants, n):         def main(in0, out0, constants, n):   # constants@1
        conv_kernel(in0.at(0), t0.at(0), ...)             in0_1 = alloc("global@1", ...); copy(in0_1, in0)
        assert t0[0] < 10                        ->       out0_1, arena_1 = ...
                                                          conv_kernel(in0_1.at(0), t0_1.at(0), ...)
                                                          read = alloc("global", i64[1]); copy(read.at(0), t0_1.at(0), 1)
                                                          assert read[0] < 10
                                                          copy(out0, out0_1)

Where a caller has an input or an output in the device's memory, its twin is that, and nothing is copied (`Twins`).

The constants are in the device's memory already, since the model was loaded. The operands of the host itself, late sizes and
the values of checks, are copied back, one element each. Checks that kernels of a processor ask for where they see an index
outside of its limits are made in each call: kernels of a device take the nearest index, and tell nobody. So no kernel has to wait
for a check: where a program launches the same kernels in every call, its checks come last, and the device never waits for the
host.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import Final

from weft.driver.device.main_arguments import GivenArguments, twin_of
from weft.driver.host.crossings import HOSTED
from weft.driver.host.host_body import OUTSIDE
from weft.ir import ONE, Const, Expr, Node, map_nodes, minimum, post_order
from weft.ir import ZERO as FIRST
from weft.loop import (
    NOTHING,
    Address,
    Alloc,
    Assert,
    Buffer,
    Call,
    Entry,
    External,
    For,
    Function,
    If,
    Kernel,
    Let,
    Load,
    Program,
    Seq,
    Stmt,
    Store,
    Thread,
    View,
    While,
    buffers_of,
    copy,
    find_note,
    late_memory,
    seq,
    statements,
)
from weft.lower import Steps, StmtRewriter, Visited
from weft.support.errors import LoweringError
from weft.targets import Target

TOO_LARGE: Final = "a tensor has more bytes than a kernel of this device takes in a buffer"


def place_on_device(host: Program, target: Target, states: Set[str] = frozenset()) -> Program:
    """Returns *host*, which launches kernels, with its data in the memory of device 1, and the kernels declared for *target*.

    Data of the scope `HOSTED` stays the host's: functions that are declared for the processor work there.
    The tensors named *states* are there before a call, and stay there after it: they are not copied.
    Where a kernel takes no more than so many bytes in a buffer, those whose sizes a call tells are checked in the call.
    """
    most = None if target.grid is None else target.grid.buffer_bytes
    works_there = any(isinstance(p, Buffer) and p.scope == HOSTED for f in host.functions for p in f.params)

    def placed(f: Function) -> Function:
        if find_note(f.notes, Kernel) is not None:
            return _declared(f, target.name)
        note = find_note(f.notes, Entry)
        if note is None:  # declared, and run by the processor
            return f
        if note.kind == "main":
            return _main(f, note, most, states)
        return f if works_there else _planned(f)

    return Program(tuple(map(placed, host.functions)))


def _declared(kernel: Function, module: str) -> Function:
    """Returns the declaration of a kernel, with the loops that tell its grid."""
    params = [twin_of(p) if isinstance(p, Buffer) else p for p in kernel.params]
    loops: list[For] = []
    s = kernel.body
    while isinstance(s, For | Alloc):
        if isinstance(s, For) and find_note(s.notes, Thread) is not None:
            loops.append(s)
        s = s.body
    body: Stmt = NOTHING
    for f in reversed(loops):
        body = For(f.var, f.begin, f.extent, f.kind, body, f.notes)
    return Function(kernel.name, tuple(params), body, (Kernel(), External(module)))


def _planned(f: Function) -> Function:
    """Returns `plan` for an arena that is on the device: only whether there is anything to run is told."""
    needed = f.params[-1]

    def change(n: Node) -> Node | None:
        match n:
            case Store(b, indices, value, mask) if b is needed:
                return Store(b, indices, minimum(value, FIRST), mask)
        return None

    return f.with_body(map_nodes(f.body, change))


def _main(f: Function, note: Entry, most: int | None, states: Set[str]) -> Function:
    """Returns `main` over buffers of the device: inputs but for *states* are copied there first, outputs back last.

    Those that kernels of the processor read, or they alone write, are used where the caller has them.
    """
    given = GivenArguments(f.params, note.args, states)
    body = _WithoutReports().rewrite(f.body)
    last = _Last() if _is_straight(body) else None
    body = _OnDevice(dict(given.twins), most, last).rewrite(body)
    made = given.kept(set(buffers_of(body)))
    body = seq(*[c for p in made.tensors for c in check_bytes(p, most)], *made.before, body, *made.after)
    own = list(made.memory)
    if last is not None:
        body = seq(body, *last.copies, *last.checks)
        own += last.memory
    for b in reversed(own):
        body = Alloc(b, body)
    return Function(f.name, tuple(made.params), body, made.notes)


@dataclass
class _Last:
    """The end of a program: copies of values to the host's memory, and the checks of them; all of it in this *memory*."""

    memory: list[Buffer] = field(default_factory=list)
    copies: list[Stmt] = field(default_factory=list)
    checks: list[Stmt] = field(default_factory=list)


def _is_straight(body: Stmt) -> bool:
    """Tells whether a program makes the same steps in every call, and computes nothing that depends on values but checks."""
    return all(isinstance(s, Seq | Alloc | View | Call | Assert) for s in statements(body)) and not any(
        late_memory(s.source) is not None for s in statements(body) if isinstance(s, View)
    )


def check_bytes(b: Buffer, most: int | None) -> list[Stmt]:
    """Returns the check of a buffer whose size a call tells, and of which a kernel takes at most so many bytes."""
    if most is None or isinstance(b.shape[0], Const) or b.scope == HOSTED:
        return []
    size = b.shape[0] * b.dtype.bytes
    return [Assert(size <= most, f"{TOO_LARGE}: {{0}} > {most}", (size,))]


class _WithoutReports(StmtRewriter):
    """Makes the checks always for which a kernel of a processor asks."""

    def visit_if(self, s: If) -> Steps:
        if any(isinstance(n, Load) and n.buffer is OUTSIDE for n in post_order(s.cond)):
            return (yield _without_report(s.then))
        return If(s.cond, (yield s.then), None if s.other is None else (yield s.other))


class _OnDevice(StmtRewriter):
    """Redirects accesses to the buffers in the device's memory, of which a kernel takes at most so many bytes each.

    Checks of values there are left for *last*, if there is one.
    """

    def __init__(self, twins: dict[Buffer, Buffer], most: int | None, last: _Last | None) -> None:
        self.twins = twins
        self.most = most
        self.last = last

    def twin(self, b: Buffer) -> Buffer:
        """Returns the buffer in the device's memory that is used for *b*; one of the processor's stays itself."""
        if b.scope == HOSTED:
            return b
        if b not in self.twins:
            if late_memory(b) is not None:
                raise LoweringError(
                    f"{b.name} is kept memory that grows in a call, which devices do not have yet",
                    hint="compile this model for a cpu target",
                )
            self.twins[b] = twin_of(b)
        return self.twins[b]

    def visit_alloc(self, s: Alloc) -> Steps:
        late = late_memory(s.buffer)
        if late is not None and not late.is_kept:
            return Alloc(s.buffer, (yield s.body))
        made = self.twin(s.buffer)
        return seq(*check_bytes(made, self.most), Alloc(made, (yield s.body)))

    def visit_view(self, s: View) -> Steps:
        if late_memory(s.source) is None:
            source, made = self.twin(s.source), self.twin(s.buffer)
            read, (offset,) = self.read_all([s.offset])
            return seq(*check_bytes(made, self.most), read(View(made, source, offset, (yield s.body))))
        if s.buffer.scope == HOSTED:
            return View(s.buffer, s.source, s.offset, (yield s.body))
        made = self.twins[s.buffer] = twin_of(s.buffer, f"{s.buffer.name}_device")
        body = yield s.body
        if made not in buffers_of(body):  # it is written by the processor alone
            return View(s.buffer, s.source, s.offset, body)
        back = copy(s.buffer, FIRST, made, FIRST, s.buffer.shape[0])
        return View(s.buffer, s.source, s.offset, seq(*check_bytes(made, self.most), Alloc(made, seq(body, back))))

    def visit_call(self, s: Call) -> Visited:
        return Call(s.callee, tuple([self.address(a) for a in s.args]))

    def address(self, e: Expr) -> Expr:
        """Returns an argument; an address is one in the device's memory."""
        return Address(self.twin(e.buffer), e.indices) if isinstance(e, Address) else e

    def visit_store(self, s: Store) -> Visited:
        """Stores a value of the host's by way of one element of its memory."""
        read, (value, at) = self.read_all([s.value, s.indices[0]])
        own = Buffer("stored", (ONE,), s.buffer.dtype)
        moved = seq(Store(own, (FIRST,), value, None), copy(self.twin(s.buffer), at, own, FIRST, ONE))
        return read(Alloc(own, moved))

    def visit_let(self, s: Let) -> Steps:
        read, (value,) = self.read_all([s.value])
        return read(Let(s.var, value, (yield s.body)))

    def visit_assert(self, s: Assert) -> Visited:
        if self.last is not None:
            return self.check_last(s, self.last)
        read, (cond, *values) = self.read_all([s.cond, *s.values])
        return read(Assert(cond, s.message, tuple(values)))

    def check_last(self, s: Assert, last: _Last) -> Stmt:
        """Leaves a check for the end; the values that it is about stay in the device's memory until then."""
        own, (cond, *values) = self.own_elements([s.cond, *s.values], is_there=True)
        kept = {n: b if n.buffer.scope == HOSTED else twin_of(b, f"{b.name}_device") for n, b in own.items()}
        last.memory += dict.fromkeys([*own.values(), *kept.values()])
        last.copies += [copy(b, FIRST, kept[n], FIRST, ONE) for n, b in own.items() if kept[n] is not b]
        last.checks.append(Assert(cond, s.message, tuple(values)))
        return seq(*[copy(b, FIRST, self.twin(n.buffer), n.indices[0], ONE) for n, b in kept.items()])

    def visit_if(self, s: If) -> Steps:
        read, (cond,) = self.read_all([s.cond])
        then = yield s.then
        other = None if s.other is None else (yield s.other)
        return read(If(cond, then, other))

    def visit_while(self, s: While) -> Steps:
        """Copies the condition's operands before the loop, and again at the end of each iteration."""
        copies, (cond,) = self.copies_of([s.cond])
        moves = [move for _, move in copies]
        made: Stmt = seq(*moves, While(cond, seq((yield s.body), *moves)))
        for own, _ in reversed(copies):
            made = Alloc(own, made)
        return made

    def read_all(self, values: Sequence[Expr]) -> tuple[_Around, list[Expr]]:
        """Returns *values* over elements copied to the host's memory, and the wrapper that puts the copies around a statement."""
        copies, made = self.copies_of(values)
        return _Around(copies), made

    def copies_of(self, values: Sequence[Expr]) -> tuple[list[tuple[Buffer, Stmt]], list[Expr]]:
        """Returns the buffers of one element that *values* are to be computed from, how they are filled, and the values."""
        own, made = self.own_elements(values, is_there=False)
        return [(b, copy(b, FIRST, self.twin(n.buffer), n.indices[0], ONE)) for n, b in own.items()], made

    def own_elements(self, values: Sequence[Expr], *, is_there: bool) -> tuple[dict[Load, Buffer], list[Expr]]:
        """Returns a buffer of one element in the host's memory for each that *values* load, and the values over these.

        The elements are those in the device's memory, and with *is_there* those in the processor's, too.
        """
        loads = {n: None for e in values for n in post_order(e) if isinstance(n, Load)}
        found = [n for n in loads if is_there or n.buffer.scope != HOSTED]
        own = {n: Buffer(f"read{k}", (ONE,), n.dtype) for k, n in enumerate(found)}

        def change(n: Node) -> Node | None:
            return Load(own[n], (FIRST,)) if isinstance(n, Load) and n in own else None

        return own, [map_nodes(e, change) for e in values] if own else list(values)


class _Around:
    """Puts copies to the host's memory before a statement."""

    def __init__(self, copies: Sequence[tuple[Buffer, Stmt]]) -> None:
        self.copies = copies

    def __call__(self, s: Stmt) -> Stmt:
        made = seq(*[move for _, move in self.copies], s)
        for own, _ in reversed(self.copies):
            made = Alloc(own, made)
        return made


def _without_report(s: Stmt) -> Stmt:
    """Returns *s* without the store that clears the report of an index outside of its limits."""

    def change(n: Node) -> Node | None:
        return NOTHING if isinstance(n, Store) and n.buffer is OUTSIDE else None

    return map_nodes(s, change)
