"""Graphs and functions as TensorFlow writes them: nodes with their inputs by name, and attributes by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.frontends.protobuf_message import Message
from weft.frontends.tensorflow.file.tensor_proto import shape_of, tensor_array, type_named

FLOW: Final = ("Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond")
"""Operators of TensorFlow 1's control flow."""
NO_FUNCTIONS: Final[Mapping[str, str]] = {}
_EMPTY: Final = Message(memoryview(b""))


class NodeDef:
    """A node: its name, its operator, its inputs, the nodes that it waits for (*controls*), and its attributes."""

    __slots__ = ("_attributes", "_message", "controls", "inputs", "name", "op")

    def __init__(self, message: Message) -> None:
        self.name, self.op = message.text(1), message.text(2)
        given = message.texts(3)
        self.inputs = [name for name in given if not name.startswith("^")]
        self.controls = [name[1:] for name in given if name.startswith("^")]
        self._message = message
        self._attributes: Mapping[str, Any] | None = None

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The attributes; element types that Weft lacks are texts, functions are their names."""
        if self._attributes is None:
            self._attributes = {name: attribute(v) for name, v in self._message.entries(5) if not name.startswith("_")}
        return self._attributes

    def texts(self, name: str) -> list[str]:
        """Returns the texts of an attribute that is a tensor of them; none for any other."""
        for key, value in self._message.entries(5):
            if key == name:
                return value.inner(8).texts(8)
        return []

    def functions(self) -> list[str]:
        """Returns the names of the functions that the node calls."""
        found = [v for _, v in self._message.entries(5)]
        return [v.inner(10).text(1) for v in found if v.has(10)]


class MadeNode(NodeDef):
    """A node that is not in the file: functions among its attributes are their names in *functions*."""

    __slots__ = ("_functions",)

    def __init__(
        self,
        name: str,
        op: str,
        inputs: Sequence[str],
        functions: Mapping[str, str] = NO_FUNCTIONS,
        controls: Sequence[str] = (),
    ) -> None:
        super().__init__(_EMPTY)
        self.name, self.op, self.inputs, self.controls = name, op, list(inputs), list(controls)
        self._attributes = self._functions = functions

    def functions(self) -> list[str]:
        """Returns the names of the functions that the node calls."""
        return list(self._functions.values())


def attribute(message: Message) -> Any:
    """Returns the value of an attribute."""
    if message.has(1):
        return _listed(message.inner(1))
    if message.has(2):
        return message.text(2)
    if message.has(3):
        return message.integer(3)
    if message.has(4):
        return message.number(4)
    if message.has(5):
        return bool(message.integer(5))
    return _of_tensors(message)


def _of_tensors(message: Message) -> Any:
    """Returns an attribute that is about tensors, or a function's name."""
    if message.has(6):
        return type_named(message.integer(6))
    if message.has(7):
        return shape_of(message.inner(7))
    if message.has(8):
        return tensor_array(message.inner(8))
    return message.inner(10).text(1) if message.has(10) else None


def _listed(message: Message) -> list[Any]:
    if message.has(2):
        return message.texts(2)
    if message.has(6):
        return [type_named(n) for n in message.integers(6)]
    if message.has(7):
        return [shape_of(m) for m in message.messages(7)]
    if message.has(9):
        return [m.text(1) for m in message.messages(9)]
    if message.has(5):
        return [bool(n) for n in message.integers(5)]
    if message.has(4):
        return [float(n) for n in message.numbers(4)]
    return [*message.integers(3)]


@dataclass(frozen=True)
class FunctionDef:
    """A function: the names of its arguments, its nodes, and for each result the node that makes it.

    Nodes *inside* of it are named to users by that and its name.
    """

    name: str
    arguments: list[str]
    nodes: list[NodeDef]
    results: list[str]
    inside: str


@dataclass(frozen=True)
class GraphDef:
    """A graph, and the library of the functions that its nodes call."""

    nodes: list[NodeDef]
    functions: Mapping[str, FunctionDef]


def graph_def(message: Message) -> GraphDef:
    """Returns a graph; raises `Malformed` where the message is none."""
    functions = [_function(f) for f in message.inner(2).messages(1)]
    return GraphDef([NodeDef(n) for n in message.messages(1)], {f.name: f for f in functions})


def _function(message: Message) -> FunctionDef:
    signature = message.inner(1)
    made_by = {entry.text(1): entry.text(2) for entry in message.messages(4)}
    results = [made_by.get(a.text(1), "") for a in signature.messages(3)]
    arguments = [a.text(1) for a in signature.messages(2)]
    name = signature.text(1)
    return FunctionDef(name, arguments, [NodeDef(n) for n in message.messages(3)], results, f"{name}/")
