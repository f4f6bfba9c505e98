"""Branches as calls of functions: the nodes between `Switch` and `Merge` of one predicate.

    a = f(Switch(x, p):1), b = g(Switch(x, p):0), y = Merge(b, a)   ->   y = Identity(If(p, x; then_branch=f, else_branch=g))

Each node runs under some conditions: those of the nodes that it reads or waits for, and, behind a `Switch`, its predicate's side.
A `Merge` of two sides of one predicate is rid of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from weft.frontends.tensorflow.file.graph_def import MadeNode, NodeDef
from weft.frontends.tensorflow.file.model_files import SAVE_AGAIN, result_of
from weft.frontends.tensorflow.made_functions import Functions, Nodes, argument, fresh_name, kind
from weft.frontends.tensorflow.node_order import before, in_order, node_of
from weft.support.errors import ModelError

Conditions: TypeAlias = Mapping[str, int]
"""Predicates with the sides of them under which a node runs."""

ALWAYS: Final[Conditions] = {}
MOST_CONDITIONS: Final = 100
"""Branches that may nest."""
MOST_PASSED: Final = 8
"""Nodes that may pass a predicate on."""


def with_branches(nodes: Nodes, ends: Sequence[str], functions: Functions) -> None:
    """Replaces the branches among *nodes* that *ends* need by calls of functions, which are added."""
    if any(kind(n) == "Merge" for n in nodes.values()):
        _Branches(nodes, ends, functions).replace_all()


class _Branches:
    def __init__(self, nodes: Nodes, ends: Sequence[str], functions: Functions) -> None:
        self.nodes, self.functions = nodes, functions
        self.order = list(in_order(nodes, ends, "", strict=False, needs=before))
        self.conditions: dict[str, Conditions] = {}
        self.merges: dict[str, list[NodeDef]] = {}
        self.places = {node.name: k for k, node in enumerate(self.order)}
        for node in self.order:
            found = self.conditions[node.name] = self._conditions(node)
            if len(found) > MOST_CONDITIONS:
                raise ModelError("its branches nest too deeply", where=f"{node.op} {node.name}", hint=SAVE_AGAIN)

    def replace_all(self) -> None:
        """Replaces all branches outside of others."""
        for predicate, merges in self.merges.items():
            for group in self._independent(merges):
                self._replace(predicate, group)

    def _replace(self, predicate: str, merges: Sequence[NodeDef]) -> None:
        given: dict[str, int] = {}
        ends = [[self._side(m, predicate, side) for m in merges] for side in (0, 1)]
        inner = [self._inside(predicate, side, ends[side], given) for side in (0, 1)]
        for nodes, results in zip(inner, ends, strict=True):
            with_branches(nodes, results, self.functions)
        called = {
            name: self.functions.add(name, len(given), list(inner[side].values()), ends[side])
            for name, side in (("then_branch", 1), ("else_branch", 0))
        }
        name = fresh_name(self.nodes, f"{merges[0].name}/branches")
        self.nodes[name] = MadeNode(name, "If", [predicate, *given], called)
        for k, m in enumerate(merges):
            self.nodes[m.name] = MadeNode(m.name, "Identity", [f"{name}:{k}"])

    def _inside(self, predicate: str, side: int, ends: Iterable[str], given: dict[str, int]) -> Nodes:
        """Returns the nodes of one side, in which arguments, whose tensors are added to *given*, stand for those outside."""
        made: Nodes = {}
        outside: dict[str, int] = {}

        def is_inside(name: str, node: NodeDef) -> bool:
            return node.op == "Const" or self.conditions.get(name, ALWAYS).get(predicate) == side

        stack = [(tensor, True) for tensor in ends]
        while stack:
            tensor, is_read = stack.pop()
            name = node_of(tensor)
            node = self.nodes.get(name)
            if node is not None and self._predicate(node) == predicate:
                passed = argument(given.setdefault(node.inputs[0], len(given)))
                made[name] = MadeNode(name, "IdentityN", [passed, passed])
            elif node is not None and is_inside(name, node):
                if name not in made:
                    made[name] = node
                    stack += [(i, True) for i in node.inputs] + [(c, False) for c in node.controls]
            elif is_read:
                outside[name] = max(outside.get(name, 0), result_of(tensor))
        for name, last in outside.items():
            self.functions.count(last)
            tensors = [f"{name}:{k}" if k else name for k in range(last + 1)]
            passed_on = [argument(given.setdefault(t, len(given))) for t in tensors]
            made[name] = MadeNode(name, "IdentityN", passed_on)
        return made

    def _conditions(self, node: NodeDef) -> Conditions:
        """Returns the conditions under which a node runs; a merge of two sides that runs always otherwise is noted."""
        if kind(node) == "Merge" and len(node.inputs) == 2:
            left, right = (self._of_tensor(i) for i in node.inputs)
            differing = [p for p, side in left.items() if right.get(p, side) != side]
            if len(differing) == 1:
                both = {p: side for p, side in (left | right).items() if p != differing[0]}  # type: ignore[operator]
                if not both:
                    self.merges.setdefault(differing[0], []).append(node)
                return both
        found = ALWAYS
        for held in [*map(self._of_tensor, node.inputs), *[self.conditions.get(c, ALWAYS) for c in node.controls]]:
            if held and held is not found:
                found = {**held, **found} if found else held
        return found

    def _of_tensor(self, tensor: str) -> Conditions:
        """Returns the conditions under which a tensor is computed."""
        name = node_of(tensor)
        held = self.conditions.get(name, ALWAYS)
        predicate = self._predicate(self.nodes[name]) if name in self.nodes else None
        return held if predicate is None else {**held, predicate: int(result_of(tensor) == 1)}

    def _predicate(self, node: NodeDef) -> str | None:
        """Returns the predicate of a `Switch`, behind nodes that pass it on; None for other nodes."""
        if kind(node) != "Switch" or len(node.inputs) != 2:
            return None
        tensor = node.inputs[1]
        for _ in range(MOST_PASSED):
            passing = self.nodes.get(node_of(tensor))
            if passing is None or passing.op != "Identity" or not passing.inputs:
                break
            tensor = passing.inputs[0]
        return tensor.removesuffix(":0")

    def _side(self, merge: NodeDef, predicate: str, side: int) -> str:
        """Returns the input of a merge that is computed on one side of a predicate."""
        return next(i for i in merge.inputs if self._of_tensor(i)[predicate] == side)

    def _independent(self, merges: Sequence[NodeDef]) -> list[list[NodeDef]]:
        """Returns merges by one predicate in groups of which no member needs another."""
        if len(merges) == 1:
            return [list(merges)]
        own = {m.name: self.places[m.name] for m in merges}
        between = self.order[min(own.values()) : max(own.values()) + 1]
        self.functions.count(len(between))
        level: dict[str, int] = {}
        groups: list[list[NodeDef]] = []
        for node in between:
            at = max([level.get(name, 0) for name in before(node)], default=0)
            level[node.name] = at + (node.name in own)
            if node.name in own:
                groups += [[] for _ in range(at + 1 - len(groups))]
                groups[at].append(node)
        return groups
