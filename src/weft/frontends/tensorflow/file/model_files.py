"""A model of TensorFlow as data: a graph, its inputs and outputs by name, and its variables' values."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from weft.frontends.content import HEAD, existing, name_of
from weft.frontends.protobuf_message import Message
from weft.frontends.string_ids import ENCODING
from weft.frontends.tensorflow.claims import SAVED_MODEL, is_saved_model
from weft.frontends.tensorflow.file.checkpoint import Checkpoint, mapped
from weft.frontends.tensorflow.file.graph_def import FLOW, GraphDef, NodeDef, graph_def
from weft.frontends.tensorflow.file.tensor_proto import shape_of, type_named
from weft.frontends.wire_format import Malformed
from weft.graph import Array
from weft.support.dtypes import DType
from weft.support.errors import ModelError
from weft.support.text import printable_line

SERVED: Final = "serving_default"
SAVE_AGAIN: Final = "save the model again"


@dataclass(frozen=True)
class Port:
    """An input or output of a model: the node's result that it is, its element type and shape."""

    tensor: str
    dtype: DType | str
    shape: list[int] | None


@dataclass(frozen=True)
class SourceModel:
    """A graph with inputs and outputs by name, and values of variables by the names of their handles."""

    graph: GraphDef
    inputs: Mapping[str, Port]
    outputs: Mapping[str, str]
    variables: Mapping[str, Array] = field(default_factory=dict)
    assets: Path | None = None
    """The folder of the files that vocabularies are in."""

    def texts(self) -> Iterator[str]:
        """Yields the strings of all constants, and of the names of the lines of files that tables are read from."""
        for nodes in (self.graph.nodes, *[f.nodes for f in self.graph.functions.values()]):
            for node in nodes:
                value = node.attributes.get("value") if node.op == "Const" else None
                yield from [str(node.attributes[k]) for k in ("rewrite", "separator") if k in node.attributes]
                yield from value.reshape(-1).tolist() if isinstance(value, np.ndarray) and value.dtype == object else ()
        for array in self.variables.values():
            yield from array.reshape(-1).tolist() if array.dtype == object else ()
        for path in sorted(self.assets.glob("*")) if self.assets is not None and self.assets.is_dir() else ():
            yield from vocabulary_lines(path)


def vocabulary_lines(path: Path) -> list[str]:
    """Returns the lines of a file of a model."""
    return [str(line, *ENCODING) for line in path.read_bytes().splitlines()]


def read_model(model: str | os.PathLike[str] | bytes) -> SourceModel:
    """Reads a saved model's folder, its file, or a frozen graph; raises `ModelError` where it is damaged."""
    try:
        if isinstance(model, bytes):
            return _saved(Message(memoryview(model)), None) if is_saved_model(model[:HEAD]) else _frozen(model)
        path = Path(model)
        path = path / SAVED_MODEL if path.is_dir() else existing(path)
        data = mapped(path)
        if is_saved_model(bytes(data[:HEAD])):
            return _saved(Message(data), path.parent)
        return _frozen(data)
    except Malformed as error:
        raise ModelError(f"{name_of(model)} is damaged, or no model of TensorFlow", hint=SAVE_AGAIN) from error


def files_of(path: Path) -> list[Path]:
    """Returns the files that the model at *path* consists of."""
    folder = path if path.is_dir() else path.parent if path.name == SAVED_MODEL else None
    if folder is None:
        return [path]
    beside = [*(folder / "variables").glob("variables.*"), *(folder / "assets").glob("*")]
    return [folder / SAVED_MODEL, *sorted(p for p in beside if p.is_file())]


def _frozen(data: bytes | memoryview) -> SourceModel:
    """Returns a frozen graph: its placeholders are the inputs, and the nodes that no other needs the outputs.

    Nodes that depend on no input are none: tracing leaves such behind, and lowering placeholders that nobody reads.
    """
    graph = graph_def(Message(memoryview(data)))
    read = {_node_of(name) for n in graph.nodes for name in n.inputs}
    needed = read | _awaited(graph.nodes)
    ports = {n.name: Port(n.name, *_declared(n)) for n in graph.nodes if n.op == "Placeholder"}
    is_lowered = any(n.op in FLOW for n in graph.nodes)
    inputs = {name: port for name, port in ports.items() if name in read or not is_lowered}
    ends = [n for n in graph.nodes if n.name not in needed and n.op not in (*_WITHOUT_RESULTS, "Placeholder", "Const")]
    dependent = _dependent(graph.nodes, inputs)
    chosen = [n for n in ends if n.name in dependent] or ends
    return SourceModel(graph, inputs, {n.name: n.name for n in chosen})


def _awaited(nodes: Sequence[NodeDef]) -> set[str]:
    """Returns the names of the nodes that others wait for, but those that do nothing and are not waited for themselves."""
    awaited = {name for n in nodes for name in n.controls}
    return {name for n in nodes if n.op not in _WITHOUT_RESULTS or n.name in awaited for name in n.controls}


def _dependent(nodes: Iterable[NodeDef], inputs: Iterable[str]) -> set[str]:
    """Returns the names of the nodes that depend on *inputs*."""
    readers: dict[str, list[str]] = {}
    for node in nodes:
        for tensor in node.inputs:
            readers.setdefault(_node_of(tensor), []).append(node.name)
    found, waiting = set(inputs), list(inputs)
    while waiting:
        new = set(readers.get(waiting.pop(), ())) - found
        found |= new
        waiting += new
    return found


_WITHOUT_RESULTS: Final = ("NoOp", "Assert", "SaveV2", "RestoreV2", "Assign", "AssignVariableOp")


def _declared(node: NodeDef) -> tuple[DType | str, list[int] | None]:
    """Returns the element type and the shape that a placeholder declares; raises `Malformed` for others in their places."""
    dtype, shape = node.attributes.get("dtype", "unknown"), node.attributes.get("shape")
    is_shape = shape is None or (isinstance(shape, list) and all(isinstance(n, int) for n in shape))
    if not is_shape or not isinstance(dtype, DType | str):
        raise Malformed
    return dtype, shape


def _saved(message: Message, folder: Path | None) -> SourceModel:
    graphs = list(message.messages(2))
    if not graphs:
        raise Malformed
    chosen = next((g for g in graphs if "serve" in g.inner(1).texts(4)), graphs[0])
    graph = graph_def(chosen.inner(2))
    signatures = dict(chosen.entries(5))
    served = {
        name: s for name, s in signatures.items() if any(True for _ in s.entries(2)) and name != "__saved_model_init_op"
    }
    signature = served.get(SERVED) or (next(iter(served.values())) if len(served) == 1 else None)
    if signature is None:
        raise ModelError(
            f"the model has no signature {SERVED!r}; it has {printable_line(', '.join(sorted(served))) or 'none'}",
            hint='save it with one: tf.saved_model.save(model, folder, signatures={"serving_default": function})',
        )
    inputs = {name: _port(m) for name, m in sorted(signature.entries(1), key=lambda e: e[0])}
    outputs = {name: _port(m).tensor for name, m in sorted(signature.entries(2), key=lambda e: e[0])}
    variables = {**_variables(graph, folder), **_names_of_files(graph, chosen)}
    return SourceModel(graph, inputs, outputs, variables, folder / "assets" if folder else None)


def _names_of_files(graph: GraphDef, meta_graph: Message) -> dict[str, Array]:
    """Returns the variables that hold names of files beside the model."""
    names = {_node_of(m.inner(1).text(1)): m.text(2) for m in meta_graph.messages(6)}
    nodes = [
        n for n in _of(graph.nodes, ("AssignVariableOp",)) if len(n.inputs) == 2 and _node_of(n.inputs[1]) in names
    ]
    return {_node_of(n.inputs[0]): np.asarray(names[_node_of(n.inputs[1])], object) for n in nodes}


def _port(message: Message) -> Port:
    return Port(message.text(1), type_named(message.integer(2)), shape_of(message.inner(3)))


def _variables(graph: GraphDef, folder: Path | None) -> dict[str, Array]:
    """Returns the values of variables: those that the model's own restoring nodes assign to them."""
    restored = dict(_restored(graph))
    restored |= dict(_first_values(graph, restored))
    if folder is None and restored:
        raise ModelError(
            "a saved model given as bytes has no variables, which are files of its own", hint="give the folder's path"
        )
    checkpoint = Checkpoint(folder) if folder is not None else None
    found = {name: checkpoint.array(key) for name, key in restored.items()} if checkpoint is not None else {}
    return {name: array for name, array in found.items() if array is not None}


def _restored(graph: GraphDef) -> Iterator[tuple[str, str]]:
    """Yields the names of variables, those of their handles' nodes, with their names in the checkpoint."""
    by_name = {n.name: n for n in graph.nodes}
    yield from _assigned(by_name, {n.name: n.name for n in graph.nodes if n.op in _HANDLES})
    for node in graph.nodes:
        for name in node.functions():
            f = graph.functions.get(name)
            if f is not None and any(n.op == "RestoreV2" for n in f.nodes):
                handles = dict(zip(f.arguments, [_node_of(i) for i in node.inputs], strict=False))
                yield from _assigned({n.name: n for n in f.nodes}, handles)


def _first_values(graph: GraphDef, restored: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yields the variables whose value a restored one has at first, with the name of the latter's in the checkpoint.

    So TensorFlow saves the layers of Keras 3: functions read the layers' variables, and copies of them are restored.
    """
    by_name = {n.name: n for n in graph.nodes}
    for n in _of(graph.nodes, ("AssignVariableOp",)):
        key = restored.get(_node_of(n.inputs[0])) if len(n.inputs) == 2 else None
        read = by_name.get(_node_of(n.inputs[1])) if key is not None else None
        if key is not None and read is not None and read.op == "ReadVariableOp" and read.inputs:
            source = _node_of(read.inputs[0])
            if source not in restored:
                yield source, key


_HANDLES: Final = ("VarHandleOp", "VariableV2", "Variable")
_PASSED_ON: Final = ("Identity", "Cast", "StopGradient")


def _assigned(nodes: Mapping[str, NodeDef], handles: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yields variables with their names in the checkpoint, by the nodes that assign restored values."""
    for n in _of(nodes.values(), ("AssignVariableOp", "Assign")):
        variable = handles.get(_node_of(n.inputs[0])) if len(n.inputs) == 2 else None
        found = _restoring(nodes, n.inputs[1]) if variable is not None else None
        if variable is not None and found is not None:
            yield variable, found


def _of(nodes: Iterable[NodeDef], ops: tuple[str, ...]) -> Iterator[NodeDef]:
    return (n for n in nodes if n.op in ops)


def _restoring(nodes: Mapping[str, NodeDef], tensor: str) -> str | None:
    """Returns the name in the checkpoint of the tensor that a node reads from it; None for anything else."""
    for _ in range(8):
        node = nodes.get(_node_of(tensor))
        if node is None:
            return None
        if node.op == "RestoreV2":
            return _name_at(nodes, node, result_of(tensor))
        if node.op not in _PASSED_ON or not node.inputs:
            return None
        tensor = node.inputs[0]
    return None


def _name_at(nodes: Mapping[str, NodeDef], restore: NodeDef, k: int) -> str | None:
    """Returns name *k* of the tensors that a node restores."""
    names = nodes.get(_node_of(restore.inputs[1])) if len(restore.inputs) > 1 else None
    found = names.texts("value") if names is not None else []
    return found[k] if k < len(found) else None


def _node_of(tensor: str) -> str:
    return tensor.partition(":")[0]


def result_of(tensor: str) -> int:
    """Returns which result of its node a tensor is, by the number at the end of its name; 0 without one."""
    _, _, number = tensor.rpartition(":")
    return int(number) if ":" in tensor and number.isdecimal() and len(number) < _DIGITS else 0


_DIGITS: Final = 9
