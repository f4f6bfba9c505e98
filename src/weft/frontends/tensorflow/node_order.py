"""The order in which the nodes of a graph are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

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
