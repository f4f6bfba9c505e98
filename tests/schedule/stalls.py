"""A machine that shows what hints buy: it issues the statements of a lowered program in order, and waits for what they need.

Parameters are far: a line of 16 elements is there FAR cycles after it is first asked for, by a load or by a prefetch. What the
function allocates is near, and there as soon as it is written. A statement takes a cycle. A copy leaves its value to come, as a
load into a register does; any other statement waits until all that it reads is there.

With two units, one copies to local memory and the other does the rest. Each issues its own statements in order, as soon as
what they read is there, and what they overwrite has been read.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from weft.codegen.interp.machine import evaluate
from weft.ir import Var
from weft.loop import PREFETCH, Address, Buffer, Call, For, Load, Program, Stmt, Store, loads

FAR = 100
LINE = 16

Element = tuple[Buffer, int]


@dataclass
class Machine:
    """The state of a run: each unit's cycle, when lines and elements are there, how often each buffer was written."""

    units: int = 1
    cycles: list[int] = field(default_factory=lambda: [0, 0])
    arrival: dict[Element, int] = field(default_factory=dict)
    ready: dict[Element, int] = field(default_factory=dict)
    read: defaultdict[Element, int] = field(default_factory=lambda: defaultdict(int))
    stores: Counter[str] = field(default_factory=Counter)
    far: frozenset[Buffer] = frozenset()

    def run(self, program: Program) -> int:
        """Returns the cycles until all statements of the entry function are done."""
        self.far = frozenset(p for p in program.entry.params if isinstance(p, Buffer))
        self._walk(program.entry.body, {})
        return max([*self.cycles, *self.ready.values()])

    def _walk(self, s: Stmt, at: Mapping[Var, int]) -> None:
        if isinstance(s, For):
            begin = evaluate(s.begin, at)
            for k in range(begin, begin + evaluate(s.extent, at)):
                self._walk(s.body, {**at, s.var: k})
        elif isinstance(s, Store):
            self._store(s, at)
        elif isinstance(s, Call) and s.callee == PREFETCH:
            address = s.args[0]
            assert isinstance(address, Address)
            self._ask((address.buffer, evaluate(address.indices[0], at)), self.cycles[0])
            self.cycles[0] += 1
        else:
            for part in s.children():
                if isinstance(part, Stmt):
                    self._walk(part, at)

    def _store(self, s: Store, at: Mapping[Var, int]) -> None:
        unit = int(self.units == 2 and s.buffer.scope == "local")
        target = s.buffer, evaluate(s.indices[0], at)
        operands = [(n.buffer, evaluate(n.indices[0], at)) for n in loads(s.value)]
        start = max(self.cycles[unit], self.read[target], self.ready.get(target, 0))
        there = [self._there(x, start) for x in operands]
        if not isinstance(s.value, Load):
            start = max([start, *there])
        for x in operands:
            self.read[x] = max(self.read[x], start + 1)
        self.ready[target] = max([start, *there]) + 1
        self.cycles[unit] = start + 1
        self.stores[s.buffer.name] += 1

    def _there(self, x: Element, now: int) -> int:
        """Returns when an element can be used: once it is written, or its line, which is asked for, is there."""
        return self.ready[x] if x in self.ready else self._ask(x, now) if x[0] in self.far else 0

    def _ask(self, x: Element, now: int) -> int:
        return self.arrival.setdefault((x[0], x[1] // LINE), now + FAR)
