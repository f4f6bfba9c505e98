"""Chooses the nodes of a model for a device that the host's processor computes instead, as one problem over the whole graph.

    y = conv(x); i = nonzero(y); z = gather(y, i)       conv on the device; nonzero, which goes through y step by step, and gather
                                                        on the processor, to whose memory y is copied once

Each node has up to four alternatives: it is computed on the device or on the processor, and its results are either kept in that
memory alone or copied to the other one too. A node reads its inputs in the memory of what computes it. A caller may have inputs
and outputs in either memory, so that to bring them there costs nothing here: what a device is asked for stays there unless that
runs badly. The values that a region is given, and those that it leaves, are in the device's memory; constants are in both.
`cost.graph.device_placement` estimates the times, unless the planner knows them; `layout.pbqp` solves the problem.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from enum import IntEnum
from math import inf, isfinite, prod

from weft.cost import (
    Candidate,
    Choose,
    CostSource,
    NodeWork,
    Planner,
    Question,
    RunOn,
    by_cost,
    crossing_time,
    device_time,
    processor_time,
    size_of,
    subject_of,
    work_of,
)
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Constant, Value
from weft.graph.core.state_pairs import state_pairs, updated_in_place
from weft.graph.fusion.groups import Group
from weft.graph.fusion.node_facts import facts_of, view_offset
from weft.graph.layout.pbqp import Costs, Edge, pick_cheapest, solve
from weft.targets import Target
from weft.te import OpClass, to_program


class _At(IntEnum):
    """The alternatives: on the device, and copied to the host's memory; on the processor, and copied to the device's."""

    DEVICE = 0
    DEVICE_COPIED = 1
    PROCESSOR = 2
    PROCESSOR_COPIED = 3


def place_nodes(
    graph: Graph, planner: Planner, is_refused: Callable[[Node], bool] = lambda _: False, *, is_region: bool = False
) -> frozenset[Node]:
    """Returns the nodes of *graph* that the host's processor computes; the device of the planner's target computes all others.

    Nodes of control flow are the host program's, whose values are in the device's memory. Of nodes whose steps follow one
    another, *is_refused* tells whether the device has no kernel for one. *planner* decides node by node, each time by the cost
    that all other nodes then have at best.
    """
    asked = [n for n in graph.nodes if not n.operator.has_regions and view_offset(n) is None]
    subjects = [subject_of(n.output.name) for n in asked]

    def solve_jointly(machine: Target, choose: Choose, costs: CostSource) -> list[Question]:
        answers = _Placement(graph, machine, costs, is_refused, is_region=is_region).answers(asked, choose)
        return [Question(s, *answers[n]) for s, n in zip(subjects, asked, strict=True)]

    decided = planner.decide_jointly(subjects, RunOn, solve_jointly)
    return frozenset([n for n, run_on in zip(asked, decided, strict=True) if run_on.processor])


class _Placement:
    """The alternatives of each node, and of each input, with their costs in nanoseconds, or in the unit of *known* costs."""

    def __init__(
        self, graph: Graph, target: Target, known: CostSource, is_refused: Callable[[Node], bool], *, is_region: bool
    ) -> None:
        self.target, self.known, self.is_refused = target, known, is_refused
        assert target.processor is not None  # who asks has one
        self.processor = target.processor
        self.pinned = _pinned(graph)
        self.numbers: dict[Value | None, int] = {}
        self.makers: list[Node | None] = []
        self.costs: list[list[float]] = []
        self.edges: dict[Edge, list[list[float]]] = {}
        for v in graph.inputs if is_region else ():
            self._add(None, [v], [0.0, inf])
        for n in graph.nodes:
            self._add(n, n.outputs, self._times(n))
            for made in dict.fromkeys([self.numbers[v] for v in n.inputs if v in self.numbers]):
                self._use(made, self.numbers[n.output])
        for v in graph.outputs if is_region else ():
            if v in self.numbers:  # others are constants
                self.costs[self.numbers[v]][_At.PROCESSOR] = inf

    def _add(self, maker: Node | None, values: Collection[Value], times: list[float]) -> None:
        """Adds the *maker* of *values*, with its times on the device and on the processor."""
        self.numbers.update(dict.fromkeys(values, len(self.costs)))
        self.makers.append(maker)
        copied = sum([self._crossing(v) for v in values])
        self.costs.append([times[0], times[0] + copied, times[1], times[1] + copied])

    def _crossing(self, v: Value) -> float:
        return self.known.moving(subject_of(v.name), crossing_time(_bytes(v)))

    def _use(self, made: int, used: int) -> None:
        """Lets a value be read only in the memory of its reader."""
        matrix = [[0.0] * len(self.costs[made]) for _ in self.costs[used]]
        for at in _At:
            matrix[_At.PROCESSOR if at < _At.PROCESSOR else _At.DEVICE][at] = inf
        self.edges[made, used] = matrix

    def _times(self, n: Node) -> list[float]:
        """Returns the times of a node on the device and on the processor, infinite where it can't be computed."""
        if view_offset(n) is not None:  # it is where its source is, or a copy of that
            return [0.0, 0.0]
        if n.operator.has_regions:
            return [0.0, inf]
        subject, work = subject_of(n.output.name), _work(n)
        times = [
            inf if _lacks(n, self.target) or self._is_refused(n) else device_time(work, self.target),
            inf if self._is_pinned(n) else processor_time(work, self.processor),
        ]
        return [self.known.cycles(subject, RunOn(processor=on), t) for on, t in zip((False, True), times, strict=True)]

    def _is_refused(self, n: Node) -> bool:
        return facts_of(n).kind is OpClass.OPAQUE and self.is_refused(n)

    def _is_pinned(self, n: Node) -> bool:
        return any(v in self.pinned for v in (*n.inputs, *n.outputs))

    def answers(self, asked: Collection[Node], choose: Choose) -> dict[Node, _Answer]:
        """Returns a place for each node of *asked*: *choose* takes one of the candidates, priced given the nodes before it."""
        found: dict[Node, _Answer] = {}
        open_nodes = set(asked)

        def pick(k: int, costs: Costs) -> int:
            node = self.makers[k]
            if node is None or node not in open_nodes:
                return pick_cheapest(k, costs)
            kinds = {RunOn(processor=False): costs[: _At.PROCESSOR], RunOn(processor=True): costs[_At.PROCESSOR :]}
            every = by_cost([Candidate(run_on, float(c.min())) for run_on, c in kinds.items()])
            candidates = tuple([c for c in every if isfinite(c.cycles)]) or (every[0],)
            chosen = choose(candidates)
            found[node] = candidates, chosen
            return pick_cheapest(k, kinds[chosen.decision]) + (_At.PROCESSOR if chosen.decision.processor else 0)

        solve(self.costs, self.edges, pick)
        return found


_Answer = tuple[tuple[Candidate[RunOn], ...], Candidate[RunOn]]
"""The candidates for a node, and the one that was taken."""


def _pinned(graph: Graph) -> frozenset[Value]:
    """Returns the values in the memory of states, which is the device's, with all views of them."""
    pairs = state_pairs(graph)
    found = {v for p in pairs for v in (p.taken, p.left, *updated_in_place(p))}
    for n in graph.nodes:
        if n.inputs and n.inputs[0] in found and view_offset(n) is not None:
            found.add(n.output)
    return frozenset(found)


def _lacks(n: Node, target: Target) -> bool:
    """Tells whether a device lacks what the kernel of a node needs: a type, the host's runtime, or a buffer of so many bytes."""
    values = list(_memory(n))
    is_large = target.most_bytes is not None and any(_bytes(v) > target.most_bytes for v in values)
    return bool(n.operator.on_host) or is_large or any(v.dtype.name in target.isa.missing_types for v in values)


def _memory(n: Node) -> Iterator[Value]:
    """Yields the values that a node reads and writes."""
    for v in (*n.inputs, *n.outputs):
        if v is not None:
            yield v


def _work(n: Node) -> NodeWork:
    """Returns the work of a node: by its loops where they may be steps after one another, else by its sizes."""
    nbytes = float(sum([_bytes(v) for v in _memory(n) if not isinstance(v, Constant) or v.rank > 0]))
    if facts_of(n).kind < OpClass.REDUCTION:
        return NodeWork(sum([_bytes(v) / v.dtype.bytes for v in n.outputs]), 0.0, nbytes)
    group = Group((n,), n.outputs)
    return work_of(to_program(*group.tensors(), n.op, group.sizes), nbytes)


def _bytes(v: Value) -> int:
    """Returns the bytes of a value, by guesses for sizes that are not known."""
    return prod(map(size_of, v.shape)) * v.dtype.bytes
