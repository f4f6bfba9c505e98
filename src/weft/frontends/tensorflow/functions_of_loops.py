"""Frames as loops: the values that enter a frame, go around in it, and leave it, as a call of a condition and a body.

s = Merge(Enter(x), NextIteration(body))       ->   loop = While(x, c; cond=..., body=...)
p = LoopCond(condition of s)                        y = Identity(loop:0)
body is made of Switch(s, p):1, y = Exit(Switch(s, p):0); constants come by Enter(c) alone
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from weft.frontends.tensorflow.file.graph_def import MadeNode, NodeDef
from weft.frontends.tensorflow.functions_of_branches import with_branches
from weft.frontends.tensorflow.made_functions import Functions, Nodes, argument, fresh_name, kind
from weft.frontends.tensorflow.node_order import before, node_of


@dataclass(frozen=True)
class _State:
    """A value that goes around: where it enters, where both join, and where an iteration's result goes on."""

    enter: NodeDef
    merge: NodeDef
    next: NodeDef


@dataclass(frozen=True)
class _Frame:
    """A loop: its states, the values that stay, its condition, and the consumers of states by the names of their merges."""

    name: str
    states: Sequence[_State]
    constants: Sequence[NodeDef]
    condition: str
    switches: dict[str, list[NodeDef]]
    exits: dict[str, list[NodeDef]]


def with_loops(nodes: Nodes, functions: Functions) -> None:
    """Replaces the frames among *nodes* by calls of functions, which are added."""
    _Loops(nodes, functions).replace_all()


class _Loops:
    def __init__(self, nodes: Nodes, functions: Functions) -> None:
        self.nodes, self.functions = nodes, functions
        self.waiting = {f.name: f for f in _frames(nodes)}
        self.frame_of = {e.name: f.name for f in self.waiting.values() for es in f.exits.values() for e in es}

    def replace_all(self) -> None:
        """Replaces all frames, each after those inside of it."""
        while self.waiting:
            self._replace(next(iter(self.waiting)))

    def _replace(self, name: str) -> None:
        frame = self.waiting.pop(name)
        inner = self._inside(frame)
        given = [s.enter for s in frame.states] + list(frame.constants)
        results = [s.next.inputs[0] for s in frame.states]
        stay = [argument(k) for k in range(len(results), len(given))]
        with_branches(inner, [frame.condition, *results], self.functions)
        made = list(inner.values())
        called = {
            "cond": self.functions.add("condition", len(given), made, [frame.condition]),
            "body": self.functions.add("body", len(given), made, [*results, *stay]),
        }
        loop = fresh_name(self.nodes, name)
        waits = [c for e in given for c in e.controls]
        self.nodes[loop] = MadeNode(loop, "While", [e.inputs[0] for e in given], called, waits)
        for k, state in enumerate(frame.states):
            for e in frame.exits[state.merge.name]:
                self.nodes[e.name] = MadeNode(e.name, "Identity", [f"{loop}:{k}"])

    def _inside(self, frame: _Frame) -> Nodes:
        """Returns the nodes that a loop's condition and body consist of, with arguments for the values entering the frame."""
        made: Nodes = {}
        for k, state in enumerate(frame.states):
            made[state.merge.name] = MadeNode(state.merge.name, "Identity", [argument(k)])
            for s in frame.switches[state.merge.name]:
                made[s.name] = MadeNode(s.name, "IdentityN", [argument(k)] * 2)
        for k, enter in enumerate(frame.constants, len(frame.states)):
            made[enter.name] = MadeNode(enter.name, "Identity", [argument(k)])
        stack = [frame.condition, *[s.next.inputs[0] for s in frame.states]]
        while stack:
            name = node_of(stack.pop())
            if name in made or name not in self.nodes:
                continue
            if self.frame_of.get(name) in self.waiting:
                self._replace(self.frame_of[name])
            made[name] = self.nodes[name]
            stack += before(made[name])
        return made


def _frames(nodes: Nodes) -> Iterator[_Frame]:
    """Yields the frames among *nodes* that have the shape of a loop."""
    joined = {s.enter.name: s for s in _joined(nodes)}
    switches = _readers(nodes, "Switch", [s.merge.name for s in joined.values()])
    exits = _readers(nodes, "Exit", [s.name for read in switches.values() for s in read])
    for name, enters in _entering(nodes).items():
        states = [joined[e.name] for e in enters if e.name in joined]
        read = {s.merge.name: switches[s.merge.name] for s in states}
        condition = _condition(nodes, read.values())
        if condition is not None:
            constants = [e for e in enters if e.name not in joined]
            left = {merge: [e for s in found for e in exits[s.name]] for merge, found in read.items()}
            yield _Frame(name, states, constants, condition, read, left)


def _entering(nodes: Nodes) -> dict[str, list[NodeDef]]:
    """Returns the nodes that enter each frame, by its name."""
    found: dict[str, list[NodeDef]] = {}
    for n in nodes.values():
        if kind(n) == "Enter" and len(n.inputs) == 1:
            found.setdefault(str(n.attributes.get("frame_name")), []).append(n)
    return found


def _condition(nodes: Nodes, switches: Iterable[Sequence[NodeDef]]) -> str | None:
    """Returns the tensor that all *switches* of a frame go by; None where they don't go by one loop's condition."""
    told = {node_of(s.inputs[1]) for found in switches for s in found if len(s.inputs) == 2}
    node = nodes.get(next(iter(told))) if len(told) == 1 else None
    return node.inputs[0] if node is not None and node.op == "LoopCond" and len(node.inputs) == 1 else None


def _joined(nodes: Nodes) -> Iterator[_State]:
    """Yields the states of all loops."""
    for n in nodes.values():
        if kind(n) != "Merge" or len(n.inputs) != 2:
            continue
        found = {kind(m): m for i in n.inputs if (m := nodes.get(node_of(i))) is not None and len(m.inputs) == 1}
        if found.keys() == {"Enter", "NextIteration"}:
            yield _State(found["Enter"], n, found["NextIteration"])


def _readers(nodes: Nodes, op: str, of: Sequence[str]) -> dict[str, list[NodeDef]]:
    """Returns the nodes of an operator by the names of the nodes *of* which they read the first input."""
    found: dict[str, list[NodeDef]] = {name: [] for name in of}
    for n in nodes.values():
        if kind(n) == op and n.inputs and node_of(n.inputs[0]) in found:
            found[node_of(n.inputs[0])].append(n)
    return found
