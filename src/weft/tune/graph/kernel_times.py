"""Attributes the times of a graph's kernels to the questions about the graph on which they depend.

A node of the model keeps its name through the passes, in blocks too, so a question is about the kernels that compute the value it
is named after. Maps that are fused into a convolution cost nothing by themselves; a pack or an unpack that is a kernel
of its own is the cost of moving its value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from weft.cost import Decision, Layout, Panel, Plan, Winograd, subject_of
from weft.graph import FusedGraph, Group, Node, name_without_blocks

Priced: TypeAlias = tuple[str, Decision]
"""A decision about a subject."""

MOVING_OPERATORS: Final = frozenset({"pack_channels", "unpack_channels"})
"""The operators that bring a value to another layout."""

ALONE: Final = (Layout, Winograd)
"""Decisions that change the kernel of their node alone; others change its neighbours too."""


@dataclass(frozen=True)
class Attributed:
    """The seconds of the kernels that each decision of a plan is about, and those of moving values, by their subjects."""

    seconds: dict[Priced, float] = field(default_factory=dict)
    moved: dict[str, float] = field(default_factory=dict)


def attribute(fused: FusedGraph, plan: Plan, seconds: Sequence[float]) -> Attributed:
    """Returns the cost of each decision of *plan*, given the graph *fused* that it results in, whose calls take *seconds*.

    Decisions about values of which nothing is left have no cost.
    """
    kernels = _Kernels(fused, plan, seconds)
    found = Attributed(moved=kernels.moved())
    for step in plan.steps:
        taken = kernels.seconds_of(step.subject, step.decision)
        if taken is not None:
            found.seconds[step.subject, step.decision] = taken
    return found


def plain_subject(subject: str) -> str:
    """Returns the subject of a node whose value *subject* is, in whatever layout."""
    return name_without_blocks(subject)


class _Kernels:
    """The groups of a fused graph with their seconds, found by names."""

    def __init__(self, fused: FusedGraph, plan: Plan, seconds: Sequence[float]) -> None:
        self.fused = fused
        self.taken = dict(zip(fused.calls, seconds, strict=True))
        self.group_of = {n: g for g in fused.calls for n in g.nodes}
        self.named = self._nodes_by_subject()
        self.asked = {s.subject for s in plan.steps if isinstance(s.decision, Layout)}
        self.main = {g: self._main(g) for g in fused.calls}

    def seconds_of(self, subject: str, decision: Decision) -> float | None:
        """Returns the seconds of the groups that *decision* is about; None where there are none."""
        if isinstance(decision, Panel):
            groups = self._users(subject)
            return sum(self.taken[g] for g in groups) if groups else None
        groups = self._groups(plain_subject(subject))
        if groups and not isinstance(decision, ALONE):
            groups = groups | self._neighbours(groups)
        elif groups and plain_subject(subject) in self.asked:
            groups = {g for g in groups if self.main[g] in (None, plain_subject(subject))}
            return sum(self.taken[g] for g in groups)  # 0 for a node fused into another's kernel
        return sum(self.taken[g] for g in groups) if groups else None

    def moved(self) -> dict[str, float]:
        """Returns the seconds of groups that do nothing but bring a value to another layout."""
        found: dict[str, float] = {}
        for g, seconds in self.taken.items():
            moving = [n for n in g.nodes if n.op in MOVING_OPERATORS]
            if not moving or self.main[g] is not None:
                continue
            value = moving[0].output if moving[0].op == "unpack_channels" else moving[0].inputs[0]
            assert value is not None  # a pack has an input
            subject = plain_subject(subject_of(value.name))
            found[subject] = found.get(subject, 0.0) + seconds
        return found

    def _nodes_by_subject(self) -> dict[str, Node]:
        """Returns the node that computes each value: of two nodes with one name the one that computes, not the one that moves."""
        nodes = sorted(self.fused.graph.nodes, key=lambda n: n.op not in MOVING_OPERATORS)
        return {plain_subject(subject_of(v.name)): n for n in nodes for v in n.outputs}

    def _groups(self, subject: str) -> set[Group]:
        """Returns the groups that compute the value *subject*: that of its node, and others for the same node of the model."""
        node = self.named.get(subject)
        if node is None:
            return set()
        root = self.fused.root(node.output).producer
        found = {g for n in (node, root) if n is not None and (g := self.group_of.get(n)) is not None}
        of_same = (g for g in self.taken if self.main[g] is None and any(n.source == node.source for n in g.nodes))
        return found.union(of_same) if node.source else found

    def _users(self, subject: str) -> set[Group]:
        """Returns the groups that read the matrix *subject*, packed or as it was, and the one that packs it."""
        names = {subject, f"{subject}_packed"}
        return {g for g in self.taken if any(subject_of(v.name) in names for n in g.nodes for v in n.inputs if v)}

    def _neighbours(self, groups: Iterable[Group]) -> set[Group]:
        """Returns the producers and the consumers of *groups*."""
        read = {self.fused.root(v) for g in groups for v in g.inputs}
        made = {self.fused.root(v) for g in groups for v in g.outputs}
        return {
            g
            for g in self.taken
            if not made.isdisjoint(map(self.fused.root, g.inputs))
            or not read.isdisjoint(map(self.fused.root, g.outputs))
        }

    def _main(self, group: Group) -> str | None:
        """Returns the first node of *group* that is asked for its layout, which its time is put down to."""
        moving = [n for n in group.nodes if n.op not in MOVING_OPERATORS]
        named = (plain_subject(subject_of(n.outputs[0].name)) for n in moving)
        return next((s for s in named if s in self.asked), None)
