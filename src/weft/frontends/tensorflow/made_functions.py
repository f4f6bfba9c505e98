"""Functions that are made of nodes of a graph, and the base of their importers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from weft.frontends.tensorflow.file.graph_def import FunctionDef, NodeDef
from weft.frontends.tensorflow.file.model_files import SAVE_AGAIN
from weft.support.errors import ModelError

Nodes: TypeAlias = dict[str, NodeDef]
"""The nodes of a graph or a function by their names; those of control flow are replaced in it."""

MOST_NODES: Final = 2_000_000
"""Nodes that may be looked at; those of nested branches and loops are, once for each of those around them."""


def kind(node: NodeDef) -> str:
    """Returns a node's operator; those on references are those on values."""
    return node.op.removeprefix("Ref")


def argument(k: int) -> str:
    """Returns the name of argument *k* of functions that are made; no node has such a name."""
    return f"argument {k}"


class Functions:
    """A library of functions that new ones are added to."""

    def __init__(self, made: dict[str, FunctionDef]) -> None:
        self.made = made
        self.left = MOST_NODES

    def count(self, nodes: int) -> None:
        """Counts nodes that are looked at; raises `ModelError` where there are too many."""
        self.left -= nodes
        if self.left < 0:
            raise ModelError("its branches and loops are too large, or nest too deeply", hint=SAVE_AGAIN)

    def add(self, what: str, arguments: int, nodes: Sequence[NodeDef], results: Sequence[str]) -> str:
        """Adds a function of so many *arguments*; returns its name."""
        self.count(len(nodes))
        name = f"{what} {len(self.made)}"
        self.made[name] = FunctionDef(name, [argument(k) for k in range(arguments)], list(nodes), list(results), "")
        return name


def fresh_name(nodes: Nodes, wanted: str) -> str:
    """Returns a name like *wanted* that no node has."""
    while wanted in nodes:
        wanted += "_"
    return wanted
