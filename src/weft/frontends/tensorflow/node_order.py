"""The order in which the nodes of a graph are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from weft.frontends.tensorflow.file.graph_def import NodeDef
from weft.frontends.tensorflow.file.model_files import SAVE_AGAIN
from weft.support.errors import ModelError


def node_of(tensor: str) -> str:
    """Returns the name of the node that makes a tensor."""
    return tensor.partition(":")[0]


def inputs_of(node: NodeDef) -> list[str]:
    """Returns the names of the nodes whose results a node takes."""
    return [node_of(i) for i in node.inputs]


def before(node: NodeDef) -> list[str]:
    """Returns the names of the nodes whose results a node takes, and of those that it waits for."""
    return [*inputs_of(node), *node.controls]


def in_order(
    nodes: Mapping[str, NodeDef],
    ends: Iterable[str],
    where: str,
    *,
    strict: bool = True,
    needs: Callable[[NodeDef], list[str]] = inputs_of,
) -> Iterator[NodeDef]:
    """Yields the nodes that *ends* need, each after those that it *needs* itself.

    Raises `ModelError` for a cycle; names of no node are arguments, or passed over unless *strict*.
    """
    done: set[str] = set()
    open_: set[str] = set()
    stack = [node_of(e) for e in reversed(list(ends))]
    while stack:
        name = stack[-1]
        if name in done or name not in nodes:
            stack.pop()
            continue
        if name in open_:
            open_.discard(name)
            done.add(name)
            stack.pop()
            yield nodes[name]
            continue
        open_.add(name)
        needed = needs(nodes[name])
        if strict and any(n in open_ for n in needed):
            raise ModelError("its nodes form a cycle", where=f"{where}{name}", hint=SAVE_AGAIN)
        stack += [n for n in reversed(needed) if n not in done and n not in open_]


_PASSED_ON = ("Identity", "PlaceholderWithDefault", "StopGradient")


def taken(node: NodeDef, nodes: Mapping[str, NodeDef]) -> list[str]:
    """Returns the functions that a node calls: of a conditional whose condition is a constant among *nodes*, one of two."""
    functions = node.functions()
    if node.op not in ("If", "StatelessIf") or len(functions) != 2:
        return functions
    condition = nodes.get(node_of(node.inputs[0]))
    while condition is not None and condition.op in _PASSED_ON and condition.inputs:
        condition = nodes.get(node_of(condition.inputs[0]))
    value = condition.attributes.get("value") if condition is not None and condition.op == "Const" else None
    if not isinstance(value, np.ndarray) or value.size != 1:
        return functions
    return [str(node.attributes["then_branch" if value.reshape(-1)[0] else "else_branch"])]
