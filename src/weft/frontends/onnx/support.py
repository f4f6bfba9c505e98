"""How each operator of a model is carried out, and for one that is missing a formula to fill in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import onnx.defs
from onnx import AttributeProto, ModelProto, NodeProto

from weft.frontends.onnx import translations  # noqa: F401  (fills TABLE)
from weft.frontends.onnx.check import nested_nodes, opsets_of
from weft.frontends.onnx.file.read import read_model
from weft.frontends.onnx.functions import Functions
from weft.frontends.onnx.model_node import domain_of
from weft.frontends.onnx.registry import TABLE

HOST_FAMILY: Final = "string_operators"
"""The family of operators that the runtime computes, in C, beside the generated code."""

_DEFAULTS: Final[dict[int, tuple[str, str]]] = {
    AttributeProto.FLOAT: ("float", "0.0"),
    AttributeProto.INT: ("int", "0"),
    AttributeProto.STRING: ("str", '""'),
    AttributeProto.FLOATS: ("list[float]", "()"),
    AttributeProto.INTS: ("list[int]", "()"),
    AttributeProto.STRINGS: ("list[str]", "()"),
}
"""The types and the defaults of parameters that attributes are."""


class Way(StrEnum):
    """How an operator is carried out: *composite* ones are functions, of the model's or ONNX's, that are expanded."""

    COMPILED = "compiled"
    COMPOSITE = "composite"
    HOST = "host"
    MISSING = "missing"


@dataclass(frozen=True)
class Support:
    """An operator of a model: how many nodes call it, how it is carried out, its limits in words, and a node that calls it."""

    domain: str
    name: str
    nodes: int
    way: Way
    limits: str
    example: NodeProto

    @property
    def stub(self) -> str | None:
        """A formula to fill in for one that is missing; None where it has a meaning that nobody else may give it."""
        return stub_of(self.example) if self.way is Way.MISSING and may_be_registered(self.domain, self.name) else None


def support_of(model: str | Path | bytes | ModelProto) -> list[Support]:
    """Returns the operators of a model, those of its functions among them, the missing ones first, then by name.

    Raises `ModelError` unless *model* is an ONNX model.
    """
    source = read_model(model)
    functions, opsets = Functions(source.proto), opsets_of(source.proto)
    found: dict[tuple[str, str], list[NodeProto]] = {}
    for graph in (source.proto.graph, *source.proto.functions):
        for node, _ in nested_nodes(graph):
            found.setdefault((domain_of(node), node.op_type), []).append(node)
    rows = [_row(key, nodes, functions, opsets) for key, nodes in found.items()]
    return sorted(rows, key=lambda r: (r.way is not Way.MISSING, r.domain, r.name))


def _row(key: tuple[str, str], nodes: list[NodeProto], functions: Functions, opsets: Mapping[str, int]) -> Support:
    entry = TABLE.get(key)
    if functions.is_known(nodes[0], opsets.get(key[0], 1)):
        way = Way.COMPOSITE
    elif entry is None:
        way = Way.MISSING
    else:
        way = Way.HOST if entry.family == HOST_FAMILY else Way.COMPILED
    return Support(*key, len(nodes), way, entry.limits if entry is not None else "", nodes[0])


def may_be_registered(domain: str, name: str) -> bool:
    """Tells whether `weft.register_op` takes a formula for an operator that Weft has not: it is in a domain of somebody's own."""
    return bool(domain) and domain.split(".")[:2] != ["ai", "onnx"] and not onnx.defs.has(name, domain)


def stub_of(node: NodeProto) -> str:
    """Returns Python that registers a formula for the operator of *node*, which is to be filled in."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|\W", "_", node.op_type).lower()
    name = name if name.isidentifier() else f"op_{name}"
    tensors = [f"x{i}: Tensor" if given else f"x{i}: Tensor | None = None" for i, given in enumerate(node.input)]
    attributes = [_parameter(a) for a in node.attribute]
    parameters = ", ".join([*(tensors or ["x0: Tensor"]), *(["*", *attributes] if attributes else [])])
    made = "Tensor" if len(node.output) < 2 else f"tuple[{', '.join(['Tensor'] * len(node.output))}]"
    return "\n".join(
        [
            "import weft",
            "from weft.te import Tensor, compute",
            "",
            "",
            f'@weft.register_op("{name}", onnx="{domain_of(node)}::{node.op_type}")',
            f"def {name}({parameters}) -> {made}:",
            f'    # such as: return compute(x0.shape, lambda *i: x0[i], "{name}", dtype=x0.dtype)',
            f'    raise NotImplementedError("the formula of {node.op_type}")',
        ]
    )


def _parameter(a: AttributeProto) -> str:
    kind, default = _DEFAULTS.get(a.type, ("object", "None"))
    value: Any = default
    if a.type == AttributeProto.FLOAT:
        value = repr(float(a.f))
    elif a.type == AttributeProto.INT:
        value = a.i
    return f"{a.name}: {kind} = {value}"
