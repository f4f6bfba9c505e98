"""The symbol of a network: its nodes, each an operator with attributes, and the inputs of each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from weft.frontends.content import read_text
from weft.support.errors import ModelError

LONGEST: Final = 1 << 24
"""Bytes of a symbol; those of networks of a thousand nodes have some 500,000. As objects they take 20 times as many."""

AGAIN: Final = "save the network again: net.export(path), or symbol.save(path)"
VARIABLE: Final = "null"

Entry: TypeAlias = tuple[int, int]
"""A node, and which of its results."""


@dataclass(frozen=True)
class Node:
    """An operator, or a variable (`null`), which is an input or a weight."""

    op: str
    name: str
    attributes: Mapping[str, str]
    inputs: Sequence[Entry]
    subgraphs: Sequence[Symbol] = ()

    @property
    def source(self) -> str:
        """Names the node in messages."""
        return f"{self.op} {self.name}"


@dataclass(frozen=True)
class Symbol:
    """Nodes, each after those that it uses, and the results. The variables of one inside of a node are its inputs, in order."""

    nodes: Sequence[Node]
    heads: Sequence[Entry]

    @property
    def variables(self) -> list[int]:
        """The nodes that are variables."""
        return [k for k, n in enumerate(self.nodes) if n.op == VARIABLE]


def read_symbol(path: Path) -> Symbol:
    """Returns the symbol in a file; raises `ModelError` for a damaged one."""
    try:
        return _symbol(json.loads(read_text(path, LONGEST, "give a symbol.json")))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise ModelError(f"{path} is damaged, or no symbol of MXNet", hint=AGAIN) from error


def _symbol(found: Any) -> Symbol:
    nodes = [_node(n) for n in found["nodes"]]
    heads = [(h[0], h[1]) for h in found["heads"]]
    for k, node in enumerate([*nodes, Node("", "results", {}, heads)]):
        if not all(_is_count(i) and _is_count(n) and i < k for i, n in node.inputs):
            raise ModelError("its inputs are no nodes before it", where=node.source, hint=AGAIN)
    return Symbol(nodes, heads)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and value >= 0


def _node(found: Any) -> Node:
    given = found.get("attrs") or found.get("param") or found.get("attr") or {}
    attributes = {str(k): str(v) for k, v in given.items()}
    inputs, inside = [(i[0], i[1]) for i in found["inputs"]], [_symbol(s) for s in found.get("subgraphs") or ()]
    return Node(str(found["op"]), str(found["name"]), attributes, inputs, inside)
