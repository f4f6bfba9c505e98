"""Branches and loops as regions; a body is a function that adds operators to the region that it is given a builder of.

    y, = branch(b, condition, lambda r: [...], lambda r: [...])
    states, rows = loop(b, most, condition, [s0], lambda r, step, states: (go_on, [s1], [row]))

Bodies may use any operands of the graphs around. A size in which two branches differ, or which an iteration changes in a state,
is a late size of the result; types and ranks have to be the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from weft.graph.builder.builder import Builder
from weft.graph.builder.constants import CompileTimeConstant
from weft.graph.builder.partial_evaluator import Operand, PartialEvaluator
from weft.graph.core.conditions import LateSize
from weft.graph.core.graph import Attribute
from weft.graph.core.graph_values import Value
from weft.graph.regions.region_operators import IF, LOOP
from weft.graph.regions.stacked_rows import append_regions
from weft.ir import INDEX, ONE, Expr, Var, as_expr, eq, free_vars
from weft.ops import same_size
from weft.support.dtypes import bool_, i64
from weft.support.errors import UnknownValues
from weft.support.text import in_format

Body: TypeAlias = Callable[[Builder], Sequence[Operand]]
Step: TypeAlias = Callable[
    [Builder, Operand, Sequence[Operand]], "tuple[Operand, Sequence[Operand], Sequence[Operand]]"
]
"""Builds an iteration from its number and the states: whether to go on, the new states, and a row for each scan."""

Shape: TypeAlias = tuple[Expr, ...]
Place: TypeAlias = tuple[int, int]
"""A dimension of a value: the number of the value, and that of the dimension."""


def branch(b: Builder, condition: Operand, then: Body, other: Body) -> list[Operand]:
    """Returns the results of one of two bodies, as *condition*, one bool, says when the model runs.

    Where their results have several numbers of dimensions, it is the body whose have more, and calls that choose the other are
    refused. (A result of one element is the same in any.)
    """
    then_, other_ = Region(b, "then"), Region(b, "other")
    return branch_of(b, condition, (then_, then(then_.builder)), (other_, other(other_.builder)))


def branch_of(
    b: Builder,
    condition: Operand,
    then: tuple[Region, Sequence[Operand]],
    other: tuple[Region, Sequence[Operand]],
    *,
    fewer: bool = False,
) -> list[Operand]:
    """Returns the results of one of two regions that are built, each with those that it makes, as `branch` does.

    Of results of several numbers of dimensions they are those that have *fewer*, or more.
    """
    (then_, made_then), (other_, made_other) = then, other
    left, right = then_.values(made_then), other_.values(made_other)
    if len(left) != len(right):
        b.fail(f"its branches have {len(left)} and {len(right)} outputs")
    for x, y in zip(left, right, strict=True):
        if x.dtype is not y.dtype:
            b.fail(f"its branches give {x!r} and {y!r}; both must be of one type", kind=UnknownValues)
    _settle_ranks(b, condition, (then_, left), (other_, right), fewer=fewer)
    late = {
        (k, d): b.evaluator.graph.fresh_dim("size")
        for k, (x, y) in enumerate(zip(left, right, strict=True))
        for d, (m, n) in enumerate(zip(x.shape, y.shape, strict=True))
        if not same_size(m, n) or then_.makes(m)
    }
    for region, made in ((then_, left), (other_, right)):
        region.output([*made, *[region.size(made[k].shape[d]) for k, d in late]])
    shapes = [*_shapes(left, late), *[(ONE,) for _ in late]]
    given: list[Value | None] = [b.evaluator.value(b.reshape(condition, ()), b.source)]
    regions = {"then": then_.graph, "other": other_.graph}
    node = append_regions(b.evaluator.graph, IF, given, regions, {"shapes": tuple(shapes)}, b.source)
    _read_sizes(b, late.values(), node.outputs[len(left) :])
    return list(node.outputs[: len(left)])


def _settle_ranks(
    b: Builder, condition: Operand, then: tuple[Region, list[Value]], other: tuple[Region, list[Value]], *, fewer: bool
) -> None:
    """Gives the results of two branches the same numbers of dimensions: those of one element, or those of the branch to take."""
    (then_, left), (other_, right) = then, other
    for k, (x, y) in enumerate(zip(left, right, strict=True)):
        if x.rank != y.rank and not differ_in_rank(x, y):
            region, made, like = (then_, left, y) if x.rank < y.rank else (other_, right, x)
            made[k] = region.values([region.builder.reshape(made[k], like.shape)])[0]
    differing = [k for k, (x, y) in enumerate(zip(left, right, strict=True)) if x.rank != y.rank]
    if not differing:
        return
    is_then = (sum(left[k].rank - right[k].rank for k in differing) > 0) is not fewer
    x, y = left[differing[0]], right[differing[0]]
    told = f"its branches give {x!r} and {y!r}, and it was compiled for the one of {'fewer' if fewer else 'more'} dimensions"
    require_taken(b, condition, is_then, f"{told}, which is not taken")
    if is_then:
        _leave_out(other_, right, left, differing)
    else:
        _leave_out(then_, left, right, differing)


def differ_in_rank(x: Operand, y: Operand) -> bool:
    """Tells whether two results have several numbers of dimensions, and are not one element each."""
    return x.rank != y.rank and not all(s is ONE for v in (x, y) for s in v.shape)


def require_taken(b: Builder, condition: Operand, when: bool, told: str) -> None:
    """Refuses calls whose *condition*, one bool, is not *when*, with the message *told*."""
    number = b.cast(b.reshape(condition, (1,)), i64)
    taken = as_expr(b.late_number(number, "taken", "whether its first branch is taken"), INDEX)
    b.require(eq(taken, int(when)), in_format(told))


def _leave_out(region: Region, made: list[Value], wanted: Sequence[Value], differing: Sequence[int]) -> None:
    """Has the *region* that calls never take make some results of the dimensions that are *wanted*, instead of its own."""
    for k in differing:
        like = wanted[k]
        nothing = region.builder.add("full", shape=(ONE,) * like.rank, value=0, dtype=like.dtype)
        made[k] = region.values([nothing])[0]


def loop(
    b: Builder, most: Operand | None, condition: Operand | None, initial: Sequence[Operand], step: Step
) -> tuple[list[Operand], list[Operand]]:
    """Returns the last states of a loop, and its scans: the rows of all iterations, one after another in a new first dimension.

    It runs at most *most* times, and while *condition* (true if it is None) and the condition that an iteration returns hold.
    """
    first = [b.evaluator.value(v, b.source) for v in initial]
    try:
        return _loop_of(b, most, condition, first, step)
    except _ChangedRankError as error:
        if not _certainly_runs(most, condition):
            b.fail(str(error), kind=UnknownValues)
    try:
        return _after_one(b, most, first, step)
    except _ChangedRankError as error:
        b.fail(str(error), kind=UnknownValues)


def _loop_of(
    b: Builder, most: Operand | None, condition: Operand | None, first: Sequence[Value], step: Step
) -> tuple[list[Operand], list[Operand]]:
    """Returns the results of a loop; raises `_ChangedRankError` where an iteration changes the rank of a state."""
    body = _settled_body(b, first, step)
    counted = _is_true(body.go_on) and (condition is None or _is_true(condition))
    if counted and most is None:
        b.fail("it never ends: it has no number of iterations, and its condition is always true")
    limit = None if most is None else b.add("maximum", b.cast(b.reshape(most, ()), i64), b.scalar(0, i64))
    trips: Expr = b.evaluator.graph.fresh_dim("trips")
    if counted and limit is not None:
        trips = as_expr(b.late_number(limit, "trips", "the number of iterations"), INDEX)
    start = None if condition is None or _is_true(condition) else b.evaluator.value(b.reshape(condition, ()), b.source)
    bound = None if limit is None else b.evaluator.value(limit, b.source)
    return _loop_node(b, body, [bound, start], trips, counted=counted)


class _ChangedRankError(Exception):
    """An iteration makes a state of another number of dimensions than it is given."""


def _certainly_runs(most: Operand | None, condition: Operand | None) -> bool:
    """Tells whether a loop is known to have an iteration."""
    is_counted = most is None or (
        isinstance(most, CompileTimeConstant) and not most.symbolic and bool((most.array > 0).all())
    )
    return is_counted and (condition is None or _is_true(condition))


def _after_one(
    b: Builder, most: Operand | None, first: Sequence[Value], step: Step
) -> tuple[list[Operand], list[Operand]]:
    """Returns the results of a loop whose first iteration is written out (loop peeling), since it alone changes ranks.

    A state may begin as a number that stands for a tensor of it.
    """
    go_on, states, rows = step(b, b.scalar(0, i64), first)
    left = None if most is None else b.add("sub", b.cast(b.reshape(most, ()), i64), b.scalar(1, i64))

    def next_step(
        r: Builder, number: Operand, now: Sequence[Operand]
    ) -> tuple[Operand, Sequence[Operand], Sequence[Operand]]:
        return step(r, r.add("add", number, r.scalar(1, i64)), now)

    now = [b.evaluator.value(v, b.source) for v in states]
    last, scans = _loop_of(b, left, b.cast(b.reshape(go_on, ()), bool_), now, next_step)
    pairs = zip(rows, scans, strict=True)
    return last, [b.add("concat", b.reshape(row, [ONE, *row.shape]), scan, axis=0) for row, scan in pairs]


def _settled_body(b: Builder, first: Sequence[Value], step: Step) -> _Iteration:
    """Returns the body of a loop: it is built again until all sizes of states are known that an iteration changes."""
    varying: list[Place] = []
    while True:
        body = _Iteration(b, first, varying)
        changed = body.build(step)
        if not changed:
            return body
        varying += changed


def _loop_node(
    b: Builder, body: _Iteration, conditions: Sequence[Value | None], trips: Expr, *, counted: bool
) -> tuple[list[Operand], list[Operand]]:
    """Adds the node of a loop; returns its states and its scans, of *trips* rows."""
    first, states = body.first, len(body.first) + len(body.varying)
    late = {place: b.evaluator.graph.fresh_dim("size") for place in body.varying}
    rows = [(trips, *row.shape) for row in body.rows]
    shapes = (*_shapes(body.made, late), *[(ONE,) for _ in late], *rows)
    sizes = [b.evaluator.value(b.vector([first[k].shape[d]]), b.source) for k, d in body.varying]
    facts: dict[str, Attribute] = {"counted": counted, "scans": len(rows), "shapes": shapes, "states": states}
    inputs = [*conditions, *first, *sizes]
    node = append_regions(b.evaluator.graph, LOOP, inputs, {"body": body.region.graph}, facts, b.source)
    _read_sizes(b, late.values(), node.outputs[len(first) : states])
    if not counted and rows:
        assert isinstance(trips, Var)
        _read_sizes(b, [trips], node.outputs[-1:])
    return list(node.outputs[: len(first)]), list(node.outputs[states:-1])


class Region:
    """A region while it is built."""

    def __init__(self, b: Builder, name: str) -> None:
        self.graph = b.evaluator.graph.region(name)
        self.builder = Builder(PartialEvaluator(self.graph, around=b.evaluator), b.source)

    def values(self, operands: Sequence[Operand]) -> list[Value]:
        """Returns operands as values."""
        return [self.builder.evaluator.value(v, self.builder.source) for v in operands]

    def makes(self, size: Expr) -> bool:
        """Tells whether a size is known inside of the region only."""
        own = {late.size for late in self.graph.late_sizes}
        return any(v in own for v in free_vars(size))

    def size(self, size: Expr) -> Value:
        """Returns a size as a vector of one number."""
        return self.values([self.builder.vector([size])])[0]

    def output(self, values: Sequence[Value]) -> None:
        """Makes *values* the outputs."""
        for k, v in enumerate(values):
            self.graph.output(v, f"result{k}")


class _Iteration:
    """The body of a loop of states like *first*, whose sizes at *varying* places change from one iteration to the next."""

    def __init__(self, b: Builder, first: Sequence[Value], varying: Sequence[Place]) -> None:
        self.b, self.first, self.varying = b, first, varying
        self.region = Region(b, "body")
        graph = self.region.graph
        self.step = graph.input("step", (), i64)
        sizes = {place: graph.fresh_dim("size") for place in varying}
        shapes = [[sizes.get((k, d), s) for d, s in enumerate(v.shape)] for k, v in enumerate(first)]
        self.states = [graph.input(f"state{k}", shape, first[k].dtype) for k, shape in enumerate(shapes)]
        for n, size in enumerate(sizes.values()):
            told = graph.input(f"size{n}", (1,), i64)
            graph.late_sizes.append(LateSize(size, told, 0, "a size of a state", b.source))
        self.go_on: Operand = CompileTimeConstant(np.ones((), np.bool_))
        self.made: list[Value] = []
        self.rows: list[Value] = []

    def build(self, step: Step) -> list[Place]:
        """Builds the body; returns the places at which it changes sizes of states that were taken for fixed ones."""
        r = self.region.builder
        self.go_on, made, rows = step(r, self.step, self.states)
        self.made, self.rows = self.region.values(made), self.region.values(rows)
        for k, (v, state) in enumerate(zip(self.made, self.first, strict=True)):
            told = f"its state {k} is {state!r} at first, and {v!r} then; type and rank must stay"
            if v.dtype is not state.dtype:
                self.b.fail(told, kind=UnknownValues)
            if v.rank != state.rank:
                raise _ChangedRankError(told)
        changed = [
            (k, d)
            for k, (v, state) in enumerate(zip(self.made, self.states, strict=True))
            for d, (m, n) in enumerate(zip(v.shape, state.shape, strict=True))
            if (k, d) not in self.varying and (not same_size(m, n) or self.region.makes(m))
        ]
        for row in self.rows if not changed else ():
            if any(map(self.region.makes, row.shape)):
                self.b.fail(
                    f"an iteration makes {row!r}, of a size that changes; all must be of one shape", kind=UnknownValues
                )
        sizes = [self.region.size(self.made[k].shape[d]) for k, d in self.varying]
        go_on = self.region.values([r.cast(r.reshape(self.go_on, ()), bool_)])
        self.region.output([*go_on, *self.made, *sizes, *self.rows])
        return changed


def _is_true(x: Operand) -> bool:
    """Tells whether a condition is known to hold."""
    return isinstance(x, CompileTimeConstant) and not x.symbolic and bool(x.array.all())


def _shapes(values: Sequence[Value], late: Mapping[Place, Var]) -> list[Shape]:
    """Returns the shapes of values, with late sizes at some places."""
    return [tuple([late.get((k, d), s) for d, s in enumerate(v.shape)]) for k, v in enumerate(values)]


def _read_sizes(b: Builder, sizes: Iterable[Var], values: Sequence[Value]) -> None:
    """Lets *values*, vectors of one number, tell late sizes."""
    for size, v in zip(sizes, values, strict=True):
        b.evaluator.graph.late_sizes.append(LateSize(size, v, 0, "a size that control flow tells", b.source))
