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

    @property
    def source(self) -> str:
        """Names the node in messages."""
        return f"{self.op} {self.name}"


def read_symbol(path: Path) -> tuple[list[Node], list[Entry]]:
    """Returns the nodes, each after those that it uses, and the results; raises `ModelError` for a damaged file."""
    try:
        found: Any = json.loads(read_text(path, LONGEST, "give a symbol.json"))
        nodes = [_node(n) for n in found["nodes"]]
        heads = [(h[0], h[1]) for h in found["heads"]]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise ModelError(f"{path} is damaged, or no symbol of MXNet", hint=AGAIN) from error
    for k, node in enumerate([*nodes, Node("", "results", {}, heads)]):
        if not all(_is_count(i) and _is_count(n) and i < k for i, n in node.inputs):
            raise ModelError("its inputs are no nodes before it", where=node.source, hint=AGAIN)
    return nodes, heads


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and value >= 0


def _node(found: Any) -> Node:
    given = found.get("attrs") or found.get("param") or found.get("attr") or {}
    attributes = {str(k): str(v) for k, v in given.items()}
    return Node(str(found["op"]), str(found["name"]), attributes, [(i[0], i[1]) for i in found["inputs"]])
