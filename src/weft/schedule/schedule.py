"""A schedule in the making: a program, the steps so far, and references that follow the program's changes.

s = Schedule(program)
i, j, k = s.loops(s.block("C"))
io, ii = s.split(i, [None, 8])
s.vectorize(j)
print(s.program, s.trace)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from weft.ir import Const, Expr, Names, Var
from weft.loop import (
    Block,
    Buffer,
    For,
    Function,
    Program,
    Stmt,
    bound_vars,
    print_function,
    statements,
    without_moot_notes,
)
from weft.schedule.cursors.primitive import PRIMITIVES
from weft.schedule.cursors.state import BlockRef, Change, Illegal, LoopRef, called
from weft.schedule.cursors.tree import block_path, blocks_in, loop_path, loops_on, the_block, the_loop
from weft.schedule.legality.buffer_visibility import check_scopes
from weft.schedule.legality.loop_kinds import relegalize
from weft.schedule.methods import PrimitiveMethods
from weft.schedule.rewriting.place_instruction import check_instructions
from weft.schedule.trace import Ref, Trace, references
from weft.support.errors import ScheduleError

T = TypeVar("T")
_CALLED: Final = re.compile(r"<([^<>]*):(\d+)>")


class Schedule(PrimitiveMethods):
    """A series of checked rewrites of a program's entry function; each primitive is a method."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.trace = Trace()
        self._forward: dict[Var, Var] = {}
        self._known: set[Ref] = set()

    @property
    def function(self) -> Function:
        """The function as it is now."""
        return self.program.entry

    def block(self, name: str) -> BlockRef:
        """Returns the block called *name*; raises `ScheduleError` naming the blocks there are."""
        result = BlockRef(name)
        self._checked("block", (name,), lambda: block_path(self.function, result))
        self._add("block", (name,), {}, result)
        return result

    def blocks(self) -> tuple[BlockRef, ...]:
        """Returns all blocks, in program order."""
        return tuple([BlockRef(b.name) for b in blocks_in(self.function.body)])

    def loops(self, block: BlockRef) -> tuple[LoopRef, ...]:
        """Returns the loops around *block*, outermost first."""
        path = self._checked("loops", (block,), lambda: block_path(self.function, block))
        result = tuple([LoopRef(f.var) for f in loops_on(path)])
        self._add("loops", (self._introduced(block),), {}, result)
        return result

    def extent(self, loop: LoopRef) -> int | None:
        """Returns the number of iterations of *loop*, or None if it is symbolic."""
        size = self.open_extent(loop)
        return int(size.value) if isinstance(size, Const) else None

    def open_extent(self, loop: LoopRef) -> Expr:
        """Returns the number of iterations of *loop*, which may be symbolic."""
        return the_loop(self._checked("extent", (loop,), lambda: loop_path(self.function, self._resolve(loop)))).extent

    def buffer_of(self, block: BlockRef) -> Buffer:
        """Returns the first buffer that *block* writes."""
        return (
            the_block(self._checked("buffer_of", (block,), lambda: block_path(self.function, block))).writes[0].buffer
        )

    def apply(self, name: str, /, *arguments: Any, **keywords: Any) -> Any:
        """Applies the primitive *name*, records the step, and returns its references.

        Raises `ScheduleError`, with the program's text and the statement marked, if the step is not legal; the program
        then stays as it was.
        """
        resolved = [self._resolve(a) for a in arguments]
        named = {k: self._resolve(v) for k, v in keywords.items()}
        given = (*arguments, *keywords.values())
        function, change, result = self._checked(name, given, lambda: self._run(name, resolved, named))
        recorded = [self._introduced(a) for a in arguments], {k: self._introduced(v) for k, v in keywords.items()}
        self.program = self.program.with_function(function)
        self._forward.update(change.forward)
        self._add(name, *recorded, result)
        return result

    @contextmanager
    def taking_back(self) -> Iterator[None]:
        """Takes back the steps of the `with` block if one of them is refused; the error goes on."""
        before = self.copy()
        try:
            yield
        except ScheduleError:
            self.become(before)
            raise

    def copy(self) -> Schedule:
        """Returns a schedule of the same program and steps, which goes on by itself; references of one are those of the other."""
        made = Schedule(self.program)
        made.become(self)
        return made

    def become(self, other: Schedule) -> None:
        """Takes over the program and the steps of *other*; one of the two is a copy of the other."""
        self.program = other.program
        self.trace.steps[:] = other.trace.steps
        self._forward, self._known = dict(other._forward), set(other._known)

    def _add(self, method: str, arguments: Sequence[Any], keywords: Mapping[str, Any], result: Any) -> None:
        self.trace.add(method, arguments, keywords, result)
        self._known.update(references(result))

    def _introduced(self, value: Any) -> Any:
        """Records the origin of a reference that no step has returned, so that the trace can be replayed by itself."""
        if isinstance(value, list | tuple):
            return [self._introduced(v) for v in value]
        if value in self._known or not isinstance(value, LoopRef | BlockRef):
            return value
        if isinstance(value, BlockRef):
            self._add("block", (value.name,), {}, value)
            return value
        return self._introduced_loop(self._resolve(value))

    def _introduced_loop(self, ref: LoopRef) -> LoopRef:
        inside = blocks_in(loop_path(self.function, ref)[-1])
        if inside and ref not in self._known:
            block = self._introduced(BlockRef(inside[0].name))
            around = loops_on(block_path(self.function, block))
            self._add("loops", (block,), {}, tuple([LoopRef(f.var) for f in around]))
        return ref

    def _run(self, name: str, arguments: list[Any], keywords: dict[str, Any]) -> tuple[Function, Change, Any]:
        """Runs a primitive and checks the invariants of every scheduled function."""
        change, result = PRIMITIVES[name].run(self.function, *arguments, **keywords)
        made = change.function
        checked = made if change.algorithm else relegalize(made, self.function, in_order=change.in_order)
        function = without_moot_notes(checked)
        check_scopes(function)
        check_instructions(function, self.function)
        return function, change, result

    def _resolve(self, value: Any) -> Any:
        """Forwards a loop reference to the loop that replaced its own."""
        if isinstance(value, LoopRef):
            var = value.var
            while var in self._forward:
                var = self._forward[var]
            return value if var is value.var else LoopRef(var)
        if isinstance(value, list | tuple):
            return type(value)(self._resolve(v) for v in value)
        return value

    def _checked(self, name: str, arguments: Sequence[Any], run: Callable[[], T]) -> T:
        try:
            return run()
        except Illegal as e:
            fn = self.function
            why = e.with_traceback(None)  # its frames would keep it, and all programs in them, in a cycle
        # printed for whoever reads it: rules only ask, and often; raised here, so that no nodes are its context
        raise ScheduleError(lambda: _told(fn, name, arguments, why), hint=why.hint)

    def __str__(self) -> str:
        return print_function(self.function)


def _told(fn: Function, name: str, arguments: Sequence[Any], e: Illegal) -> str:
    """Returns the step, why it is not legal, and the program with the place that the reason is about."""
    text, names = _show(fn, _as_now(fn, e.at))
    step = f"{name}({', '.join(str(_named(a)) for a in arguments)})"
    return _CALLED.sub(lambda m: names.get(int(m[2]), m[1]), f"{step} is not legal: {e.message}\n") + text


def _as_now(fn: Function, at: Stmt | None) -> Stmt | None:
    """Returns the statement to point at: for a loop or a block of the refused result, its present form."""
    if not isinstance(at, Block | For):
        return at
    now = list(statements(fn.body))
    if at in now:
        return at
    if isinstance(at, For):
        return next((s for s in now if isinstance(s, For) and s.var is at.var), None)
    return next((s for s in now if isinstance(s, Block) and s.name == at.name), None)


def _named(value: Any) -> Any:
    """Returns an argument as a message shows it."""
    if isinstance(value, LoopRef):
        return f"loop {called(value.var)}"
    return f"[{', '.join(str(_named(v)) for v in value)}]" if isinstance(value, list | tuple) else value


def _show(fn: Function, at: Stmt | None) -> tuple[str, dict[int, str]]:
    """Prints the program with the statement *at* marked, indented under the message; returns the variables' names in it, too."""
    names = Names()
    text = print_function(fn, at, names)
    called_so = {v.serial: names.of(v) for s in statements(fn.body) for v in bound_vars(s)}
    return "\n".join(f"    {line}" for line in text.splitlines()), called_so
