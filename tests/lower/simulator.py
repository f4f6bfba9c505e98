"""A machine of units that run their own instructions in order and wait for one another's tokens, cycle by cycle.

    stream = instructions(flat, GEMM_UNIT_TARGET, arrays)      what each unit is given, in the order of the program
    simulate(stream).utilisation("execute")                    how long it takes, and how busy each unit is
    races(stream)                                              pairs of instructions that nothing keeps in order
    run_in_some_order(stream, rng)                             units run ahead of one another as far as tokens let them

Nothing here comes from the compiler but the program: addresses are computed by walking its loops, and the instructions of the
matrix unit are NumPy's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from weft.ir import Binary, Cast, Const, Expr, Select, Var
from weft.loop import Address, Alloc, Buffer, Call, For, If, Let, Load, Program, Seq, Stmt, Store
from weft.targets import Target

Array = npt.NDArray[Any]
Queue = tuple[int, int]
COSTS = {
    "gemm_unit.load_inp": 30,
    "gemm_unit.load_wgt": 30,
    "gemm_unit.clear": 4,
    "gemm_unit.multiply": 64,
    "gemm_unit.store": 40,
}
"""Cycles: a load waits for memory, 16 x 16 x 16 products take 64 cycles on 64 multipliers."""


class Deadlock(Exception):
    """All units wait."""


@dataclass(eq=False)
class Memory:
    """The elements of a buffer, and their numbers."""

    name: str
    values: Array

    def __post_init__(self) -> None:
        self.numbers = np.arange(len(self.values))


@dataclass(frozen=True, eq=False)
class Instruction:
    """One instruction of a unit: `push` or `pop` of a queue, or something that reads and writes elements of memories."""

    unit: int
    name: str
    cycles: int = 0
    queue: Queue | None = None
    reads: tuple[tuple[Memory, Array], ...] = ()
    writes: tuple[tuple[Memory, Array], ...] = ()
    run: Callable[[], None] = lambda: None


@dataclass
class Stream:
    """The instructions in the order of the program; the number of units, by name."""

    units: tuple[str, ...]
    all: list[Instruction] = field(default_factory=list)

    def of(self, unit: int) -> deque[Instruction]:
        """The instructions of one unit."""
        return deque(i for i in self.all if i.unit == unit)

    def without(self, *numbers: int) -> Stream:
        """The stream without some of its instructions."""
        return Stream(self.units, [i for n, i in enumerate(self.all) if n not in numbers])


@dataclass(frozen=True)
class Report:
    """How many cycles a stream took, and how many of them each unit was busy."""

    cycles: int
    busy: dict[str, int]

    def utilisation(self, unit: str) -> float:
        """The share of the time that a unit was busy."""
        return self.busy[unit] / self.cycles


# -- from a lowered program to the streams of its units ------------------------------------------------------------------


class _Walk:
    """Runs the loops of a program, and notes the instructions that come by."""

    def __init__(self, target: Target, memory: dict[Buffer, Memory]) -> None:
        self.target, self.memory = target, memory
        self.made = Stream(tuple([u.name for u in target.units]))
        self.values: dict[Var, int] = {}
        self.units = {name: n for n, u in enumerate(target.units) for name in u.instructions}

    def walk(self, s: Stmt) -> None:
        match s:
            case Seq(parts):
                for p in parts:
                    self.walk(p)
            case For(var, begin, extent, _, body, _):
                first = self.number(begin)
                for i in range(first, first + self.number(extent)):
                    self.values[var] = i
                    self.walk(body)
            case If(cond, then, other):
                if self.number(cond):
                    self.walk(then)
                elif other is not None:
                    self.walk(other)
            case Let(var, value, body):
                self.values[var] = self.number(value)
                self.walk(body)
            case Alloc(buffer, body):
                size = self.number(buffer.shape[0])
                self.memory[buffer] = Memory(buffer.name, np.full(size, 85).astype(buffer.dtype.numpy))
                self.walk(body)
            case Call(("weft.push_token" | "weft.pop_token") as callee, args):
                a, b = (self.number(x) for x in args)
                push = callee == "weft.push_token"
                self.made.all.append(Instruction(a if push else b, "push" if push else "pop", 0, (a, b)))
            case Call(callee, args):
                self.made.all.append(self.tile(callee, args))
            case Store():
                self.made.all.append(self.assignment(s))
            case _:
                raise TypeError(f"the simulator does not know a {type(s).__name__}")

    def number(self, e: Expr) -> int:
        """The value of an index."""
        return int(self.value(e))

    def value(self, e: Expr) -> Any:
        match e:
            case Const(v):
                return v
            case Var():
                return self.values[e]
            case Load(buffer, (i,)):
                return self.memory[buffer].values[self.number(i)]
            case Select(cond, then, other):
                return self.value(then if self.value(cond) else other)
            case Cast(a):
                return e.dtype.numpy.type(self.value(a))
            case Binary():
                return e.numpy(self.value(e.a), self.value(e.b))
        raise TypeError(f"the simulator does not know a {type(e).__name__}")

    def tile(self, callee: str, args: Sequence[Expr]) -> Instruction:
        """An instruction of the matrix unit, on tiles whose strides are the last of its arguments."""
        places = [a for a in args if isinstance(a, Address)]
        strides = [self.number(a) for a in args if not isinstance(a, Address)]
        memories = [self.memory[a.buffer] for a in places]
        starts = [self.number(a.indices[0]) for a in places]
        tiles = [_tile(m.values, at, s) for m, at, s in zip(memories, starts, strides, strict=True)]
        touched = [(m, _tile(m.numbers, at, s).ravel()) for m, at, s in zip(memories, starts, strides, strict=True)]
        updates = callee == "gemm_unit.multiply"
        reads = tuple(touched if updates else touched[1:])
        done = _SEMANTICS[callee]
        return Instruction(self.units[callee], callee, COSTS[callee], None, reads, (touched[0],), lambda: done(*tiles))

    def assignment(self, s: Store) -> Instruction:
        """A plain assignment: it belongs to the first unit that fills the scope, or empties one that it reads."""
        at, values, memory = self.number(s.indices[0]), dict(self.values), self.memory[s.buffer]
        found = list(_loads(s.value))
        scopes = {x.buffer.scope for x in found}
        own = [s.buffer.scope in u.fills or bool(scopes & {*u.empties}) for u in self.target.units]
        reads = tuple([(self.memory[x.buffer], np.array([self.number(x.indices[0])])) for x in found])

        def done() -> None:
            self.values = values
            memory.values[at] = self.value(s.value)

        return Instruction(own.index(True), "assign", 1, None, reads, ((memory, np.array([at])),), done)


def _loads(e: Expr) -> Iterator[Load]:
    if isinstance(e, Load):
        yield e
    for k in e.children():
        if isinstance(k, Expr):
            yield from _loads(k)


def _tile(values: Array, start: int, stride: int) -> Array:
    """A view of 16 x 16 elements, checked against the end of the memory."""
    assert start >= 0
    assert start + 15 * stride + 16 <= len(values)
    size = values.itemsize
    return as_strided(values[start:], (16, 16), (stride * size, size))


def _multiply(acc: Array, inp: Array, wgt: Array) -> None:
    acc += inp.astype(np.int32) @ wgt.astype(np.int32).T


_SEMANTICS: dict[str, Callable[..., None]] = {
    "gemm_unit.multiply": _multiply,
    "gemm_unit.clear": lambda acc: acc.fill(0),
    **dict.fromkeys(("gemm_unit.load_inp", "gemm_unit.load_wgt", "gemm_unit.store"), np.copyto),
}


def instructions(flat: Program, target: Target, arrays: Mapping[str, Any]) -> Stream:
    """What the units of *target* are given when the lowered program *flat* runs on *arrays*, flat ones, and sizes."""
    memory = {p: Memory(p.name, arrays[p.name]) for p in flat.entry.params if isinstance(p, Buffer)}
    walk = _Walk(target, memory)
    walk.values.update({p: arrays[p.name] for p in flat.entry.params if isinstance(p, Var)})
    walk.walk(flat.entry.body)
    return walk.made


# -- running streams -----------------------------------------------------------------------------------------------------


def simulate(stream: Stream) -> Report:
    """Runs each unit as early as its tokens allow, and computes; raises `Deadlock`."""
    clock = [0] * len(stream.units)
    busy = dict.fromkeys(stream.units, 0)
    tokens: dict[Queue, deque[int]] = {}
    started: list[tuple[int, int, Instruction]] = []
    for i in _steps(stream, lambda ready: ready[0]):
        if i.name == "push":
            tokens.setdefault(_queue(i), deque()).append(clock[i.unit])
        elif i.name == "pop":
            clock[i.unit] = max(clock[i.unit], tokens[_queue(i)].popleft())
        else:
            started.append((clock[i.unit], len(started), i))
            clock[i.unit] += i.cycles
            busy[stream.units[i.unit]] += i.cycles
    for _, _, i in sorted(started, key=lambda x: x[:2]):
        i.run()
    return Report(max(clock), busy)


def run_in_some_order(stream: Stream, rng: np.random.Generator) -> None:
    """Runs the instructions, the next of a unit that can go on each time; some units are quicker than others."""
    weights = rng.random(len(stream.units)) ** 3 + 1e-3
    for i in _steps(stream, lambda ready: int(rng.choice(ready, p=weights[ready] / weights[ready].sum()))):
        i.run()


def _steps(stream: Stream, choose: Callable[[list[int]], int]) -> Iterator[Instruction]:
    """Yields instructions, of the unit that *choose* takes of those that can go on."""
    left = [stream.of(u) for u in range(len(stream.units))]
    tokens: dict[Queue, int] = {}
    while any(left):
        ready = [u for u, todo in enumerate(left) if todo and (todo[0].name != "pop" or tokens.get(_queue(todo[0]), 0))]
        if not ready:
            waiting = [f"{stream.units[u]} for {stream.units[_queue(w[0])[0]]}" for u, w in enumerate(left) if w]
            raise Deadlock(f"{', '.join(waiting)} wait")
        i = left[choose(ready)].popleft()
        if i.queue is not None:
            tokens[i.queue] = tokens.get(i.queue, 0) + (1 if i.name == "push" else -1)
        yield i


def _queue(i: Instruction) -> Queue:
    assert i.queue is not None
    return i.queue


def races(stream: Stream) -> list[str]:
    """Says which instructions touch the same memory, one of them writing, with no order between their units.

    Each instruction knows how many instructions of every unit are surely done before it (Lamport's vector clocks); tokens carry
    that knowledge.
    """
    count = len(stream.units)
    known = np.zeros((count, count), int)
    tokens: dict[Queue, deque[Array]] = {}
    last: dict[tuple[Memory, bool], Array] = {}
    found: list[str] = []
    for i in _steps(stream, lambda ready: ready[0]):
        if i.name == "push":
            tokens.setdefault(_queue(i), deque()).append(known[i.unit].copy())
        elif i.name == "pop":
            known[i.unit] = np.maximum(known[i.unit], tokens[_queue(i)].popleft())
        else:
            known[i.unit, i.unit] += 1
            found += _touch(i, known[i.unit], last, count)
    return found


def _touch(i: Instruction, known: Array, last: dict[tuple[Memory, bool], Array], count: int) -> list[str]:
    """Compares an instruction with the last ones of all units on the same elements, and notes it down."""
    found = []
    for touched, writes in ((i.reads, False), (i.writes, True)):
        for memory, where in touched:
            for other in (True, False) if writes else (True,):
                seen = last.setdefault((memory, other), np.zeros((count, len(memory.values)), int))
                if (seen[:, where] > known[:, None]).any():
                    found.append(f"{i.name} of {memory.name}[{where[0]}]")
            mine = last.setdefault((memory, writes), np.zeros((count, len(memory.values)), int))
            mine[i.unit, where] = known[i.unit]
    return found
