"""Exact dependence analysis of loop programs of constant sizes, by integer sets (isl): the oracle for the legality checks.

Each instance of a block is known by its name and the values of its axes. What an instance reads comes from one assignment
(or the start of a reduction) and from all updates of the reduction since: its *sources*. A step is legal exactly if all
instances that run after it, and the results at the end, have the sources that they had before; the order of updates is free, but
none may count twice (Feautrier, "Dataflow analysis of array and scalar references", 1991; reductions as commuting updates). A
loop may run in parallel exactly if it carries no dependence, or only such as vanish where each iteration has memory of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import islpy as isl

from weft.ir import ONE, Add, And, Const, Eq, Expr, FloorDiv, FloorMod, Le, Lt, Mul, Sub, Var
from weft.loop import Alloc, AxisKind, Block, Buffer, For, Function, Region, Seq, Stmt, statements

END = "END"
"""The statement that reads all results, after everything else."""


class NotAffine(Exception):
    """A program of which an exact model can't be made: indices read from memory, blocks in blocks, symbolic sizes."""


def text(e: Expr, names: Mapping[Var, str]) -> str:
    """The expression in isl's notation."""
    match e:
        case Const(value):
            return {True: "0=0", False: "0=1"}.get(value, str(value)) if isinstance(value, bool) else str(value)
        case Var() if e in names:
            return names[e]
        case Add(a, b) | Sub(a, b) | Mul(a, b) | Lt(a, b) | Le(a, b) | Eq(a, b) | And(a, b):
            if isinstance(e, Mul) and not (isinstance(a, Const) or isinstance(b, Const)):
                raise NotAffine(str(e))
            return f"({text(a, names)} {_SIGN[type(e)]} {text(b, names)})"
        case FloorDiv(a, Const(value)):
            return f"floor(({text(a, names)})/{value})"
        case FloorMod(a, Const(value)):
            return f"(({text(a, names)}) mod {value})"
    raise NotAffine(str(e))


_SIGN: Mapping[type[Expr], str] = {Add: "+", Sub: "-", Mul: "*", Lt: "<", Le: "<=", Eq: "=", And: "and"}


@dataclass(frozen=True)
class Statement:
    """A block, or the start of its reduction, in its loops: what isl is told about it."""

    name: str  # of its iterations
    instance: str  # of what these compute, the same before and after a step
    block: Block
    loops: tuple[For, ...]
    time: tuple[str, ...]
    private: Mapping[Buffer, int]  # how many of the loops around give a buffer memory of its own
    is_start: bool

    @cached_property
    def names(self) -> dict[Var, str]:
        """The loops, numbered."""
        return {f.var: f"i{n}" for n, f in enumerate(self.loops)}

    @cached_property
    def axes(self) -> dict[Var, str]:
        """What the block's axes are bound to."""
        pairs = zip(self.block.axes, self.block.bindings, strict=True)
        return {a.var: text(e, self.names) for a, e in pairs}

    @property
    def space(self) -> str:
        return f"{self.name}[{', '.join(self.names.values())}]"

    @property
    def where(self) -> str:
        """The iterations that there are."""
        parts = [f"{text(f.begin, self.names)} <= {self.names[f.var]} < {self._end(f)}" for f in self.loops]
        parts.append(text(self.block.predicate, self.names))
        if self.is_start:
            parts += [f"{self.axes[a.var]} = 0" for a in self.block.axes if a.kind is AxisKind.REDUCE]
        return " and ".join(parts)

    def _end(self, f: For) -> str:
        return f"{text(f.begin, self.names)} + {text(f.extent, self.names)}"

    @property
    def target(self) -> str:
        """The instance that an iteration computes; a start has no reduced axes."""
        kept = [a for a in self.block.axes if not (self.is_start and a.kind is AxisKind.REDUCE)]
        return f"{self.instance}[{', '.join([self.axes[a.var] for a in kept])}]"

    def accesses(self, regions: Sequence[Region]) -> Iterator[str]:
        """Maps from iterations to elements, which are told apart by the loops that their memory is private to."""
        for r in regions:
            if any(x.extent is not ONE for x in r.ranges):
                raise NotAffine(f"{self.block.name} takes a box of {r.buffer.name}")
            own = list(self.names.values())[: self.private.get(r.buffer, 0)]
            at = [text(x.begin, self.axes) for x in r.ranges]
            yield f"{self.space} -> {r.buffer.name}[{', '.join(_padded(own) + at)}] : {self.where}"

    @property
    def is_update(self) -> bool:
        """Whether it combines a value into one that is there."""
        reduced = any(a.kind is AxisKind.REDUCE for a in self.block.axes)
        updates = self.block.init is not None or any(self._is_own(r) for r in self.block.reads)
        return reduced and not self.is_start and updates

    def _is_own(self, read: Region) -> bool:
        return any(read.buffer is w.buffer for w in self.block.writes)

    @property
    def reads(self) -> list[Region]:
        """What it reads; an update's read of what it updates does not count, and a start reads nothing."""
        if self.is_start:
            return []
        return [r for r in self.block.reads if not (self.is_update and self._is_own(r))]


_PRIVATE = 8
"""Each element has so many coordinates for the loops that its memory is private to."""


def _padded(own: Sequence[str]) -> list[str]:
    return [*own, *["-1"] * (_PRIVATE - len(own))]


class Model:
    """What isl needs to know of a function: who runs when, and touches what."""

    def __init__(self, fn: Function) -> None:
        self.fn = fn
        self.known = {b.name for b in statements(fn.body) if isinstance(b, Block)}
        self.statements: list[Statement] = []
        self._visit(fn.body, (), ("0",), {})

    def _visit(self, s: Stmt, loops: tuple[For, ...], time: tuple[str, ...], private: Mapping[Buffer, int]) -> None:
        match s:
            case For():
                self._visit(s.body, (*loops, s), (*time, f"i{len(loops)}", "0"), private)
            case Seq(body):
                for n, part in enumerate(body):
                    self._visit(part, loops, (*time[:-1], str(n), "0", "0"), private)
            case Alloc(buffer, body):
                if len(loops) > _PRIVATE:
                    raise NotAffine("too many loops around an allocation")
                self._visit(body, loops, time, {**private, buffer: len(loops)})
            case Block():
                self._add(s, loops, time, private)
            case _:
                raise NotAffine(type(s).__name__)

    def _add(self, b: Block, loops: tuple[For, ...], time: tuple[str, ...], private: Mapping[Buffer, int]) -> None:
        if any(isinstance(x, Block) for x in statements(b.body)):
            raise NotAffine(f"{b.name} has blocks inside")
        n = len(self.statements)
        if b.init is not None:
            self.statements.append(Statement(f"T{n}", f"{b.name}_init", b, loops, (*time[:-1], "0"), private, True))
        self.statements.append(Statement(f"S{n}", b.name, b, loops, (*time[:-1], "1"), private, False))

    @cached_property
    def schedule(self) -> Any:
        """When each iteration runs."""
        longest = max(len(s.time) for s in self.statements)
        parts = [
            f"{s.space} -> [{', '.join(s.time + ('0',) * (longest - len(s.time)))}] : {s.where}"
            for s in self.statements
        ]
        end = f"{END}[] -> [{', '.join(['1000000'] + ['0'] * (longest - 1))}]"
        return _relation([*parts, end])

    def instances(self, rename: Mapping[str, str]) -> Any:
        """What each iteration computes; blocks that a step has copied are called as *rename* says."""
        named = [(s, rename.get(s.instance, s.instance)) for s in self.statements]
        parts = [f"{s.space} -> {name}{s.target[len(s.instance) :]} : {s.where}" for s, name in named]
        return isl.UnionMap("{ " + "; ".join([*parts, f"{END}[] -> {END}[]"]) + " }")

    @cached_property
    def reads(self) -> Any:
        """What is read, the results at the end too."""
        results = [p for p in self.fn.params if isinstance(p, Buffer) and self._is_written(p)]
        parts = [a for s in self.statements for a in s.accesses(s.reads)]
        for p in results:
            at = [f"a{d}" for d in range(p.rank)]
            where = " and ".join([f"0 <= {a} < {text(n, {})}" for a, n in zip(at, p.shape, strict=True)]) or "0=0"
            parts.append(f"{END}[] -> {p.name}[{', '.join(_padded([]) + at)}] : {where}")
        return _relation(parts)

    def _is_written(self, p: Buffer) -> bool:
        return any(r.buffer is p for s in self.statements for r in s.block.writes)

    def writes(self, *, updates: bool) -> Any:
        """What updates write, or all other statements."""
        chosen = [s for s in self.statements if s.is_update is updates]
        parts = [a for s in chosen for a in s.accesses(s.block.writes)]
        return _relation(parts)

    @cached_property
    def flow(self) -> Any:
        """From each source to the iterations that read it, with the element: `S[..] -> [R[..] -> B[..]]`."""
        info = isl.UnionAccessInfo.from_sink(self.reads)
        info = info.set_must_source(self.writes(updates=False)).set_may_source(self.writes(updates=True))
        return info.set_schedule_map(self.schedule).compute_flow().get_full_may_dependence()

    def sources(self, rename: Mapping[str, str]) -> Any:
        """From instances that are read to the iterations that read them: `S[axes] -> [R[loops] -> B[index]]`."""
        named = self.instances(rename)
        return self.flow.apply_domain(named).apply_range(named.domain().identity().product(self.bare))

    @cached_property
    def bare(self) -> Any:
        """From elements to elements without the loops that they are private to."""
        return isl.UnionMap("{ " + "; ".join(self._without_private()) + " }")

    def _without_private(self) -> Iterator[str]:
        for b in dict.fromkeys(r.buffer for s in self.statements for r in (*s.block.reads, *s.block.writes)):
            own, at = [f"p{n}" for n in range(_PRIVATE)], [f"a{d}" for d in range(b.rank)]
            yield f"{b.name}[{', '.join(own + at)}] -> {b.name}[{', '.join(at)}]"

    def counts_twice(self) -> bool:
        """Whether some reader sees two runs of one instance of an update."""
        named = self.instances({})
        same = named.apply_range(named.reverse())
        same = same.subtract(same.domain().identity())
        names = [s.name for s in self.statements if s.is_update]
        chosen = [m for m in _maps(same) if m.get_tuple_name(isl.dim_type.in_) in names]
        twins = isl.UnionMap("{ }")
        for m in chosen:
            twins = twins.union(isl.UnionMap.from_map(m))
        return not twins.is_empty() and not self.flow.intersect(twins.apply_range(self.flow)).is_empty()

    def carried(self, loop: Var) -> set[str]:
        """The buffers through which iterations of *loop* touch each other: one writes what another reads or writes."""
        between = self._between(loop)
        reads, updates, writes = self.reads, self.writes(updates=True), self.writes(updates=False)
        written = updates.union(writes)
        touched = written.union(reads)
        found: set[str] = set()
        for m in _maps(written):
            name = m.get_tuple_name(isl.dim_type.out)
            w = isl.UnionMap.from_map(m)
            if not w.apply_range(touched.reverse()).intersect(between).is_empty():
                found.add(name)
        return found

    def carried_flow(self, loop: Var, *, anywhere: bool = False) -> set[str]:
        """The buffers through which values pass between iterations of *loop*."""
        between = self._between(loop, anywhere=anywhere)
        found: set[str] = set()
        for m in _maps(self.flow):
            name = m.range().unwrap().get_tuple_name(isl.dim_type.out)
            pairs = isl.UnionMap.from_map(m.range_factor_domain())
            if not pairs.intersect(between).is_empty():
                found.add(name)
        return found

    def _between(self, loop: Var, *, anywhere: bool = False) -> Any:
        """Pairs of iterations in different iterations of *loop*, the loops around it standing still, or not."""
        inside = [s for s in self.statements if any(f.var is loop for f in s.loops)]
        parts = []
        for a in inside:
            for b in inside:
                depth = next(n for n, f in enumerate(a.loops) if f.var is loop)
                left, right = [[f"{x}{n}" for n in range(len(s.loops))] for x, s in (("i", a), ("j", b))]
                same = [] if anywhere else [f"i{n} = j{n}" for n in range(depth)]
                for sign in "<>":
                    where = " and ".join([*same, f"i{depth} {sign} j{depth}"])
                    parts.append(f"{a.name}[{', '.join(left)}] -> {b.name}[{', '.join(right)}] : {where}")
        return isl.UnionMap("{ " + "; ".join(parts) + " }")


def _relation(parts: Sequence[str]) -> Any:
    """The union of *parts*. Equalities that hold in it are made explicit: isl's flow misses sources in divisions otherwise."""
    return isl.UnionMap("{ " + "; ".join(parts) + " }").detect_equalities()


def _maps(u: Any) -> list[Any]:
    found: list[Any] = []
    u.foreach_map(found.append)
    return found


def same_sources(before: Model, after: Model) -> bool:
    """Tells whether all that runs *after* a step, and its results, have the sources that they had *before*."""
    elements = before.bare.range().union(after.bare.range()).identity()
    named, renamed = before.instances({}), after.instances(_names(before, after))
    by_instance = before.sources({}).apply_range(named.product(elements))
    wanted = by_instance.apply_range(renamed.reverse().product(elements))
    return bool(wanted.is_equal(after.sources(_names(before, after)))) and not after.counts_twice()


def _names(before: Model, after: Model) -> dict[str, str]:
    """What the instances of blocks that a step has copied or split off were called before: C_1 is C."""
    known = {s.instance for s in before.statements}
    renamed: dict[str, str] = {}
    for s in after.statements:
        name = s.instance
        while name not in known and re.search(r"_\d+(?=$|_init$)", name):
            name = re.sub(r"_\d+(?=$|_init$)", "", name, count=1)
        renamed[s.instance] = name
    return renamed
