"""Results that are views of arguments, or of other results: as in PyTorch they share memory, and nothing is computed.

    (y, t) = (addmm(b, x, w), t(w))     gives the one result y, and with it w.t()

Graphs of training return such views of parameters, which the graphs of their gradients read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch.fx import Node


class SharedResult(NamedTuple):
    """A result that is a view of an argument (*of_argument*), or of a result, with that *number*, by *steps*."""

    number: int
    of_argument: bool
    steps: tuple[Node, ...]

    def of(self, tensor: torch.Tensor) -> Any:
        """Returns the view of *tensor*."""
        for n in self.steps:
            tensor = n.target(tensor, *n.args[1:], **n.kwargs)
        return tensor


def shared_results(places: Sequence[Node], results: Sequence[Any]) -> dict[int, SharedResult]:
    """Returns those of *results* that are views, by their numbers; *places* are the graph's arguments.

    Views by sizes that a graph computes are none of them, and neither are those of complex numbers.
    """
    bases = {n: (k, True) for k, n in enumerate(places)}
    for k, node in enumerate(results):
        if isinstance(node, Node) and not _is_step(node):
            bases.setdefault(node, (k, False))
    found: dict[int, SharedResult] = {}
    for k, node in enumerate(results):
        steps: list[Node] = []
        while isinstance(node, Node) and _is_step(node):
            steps.append(node)
            node = node.args[0]
        if steps and node in bases and _is_real(node):
            found[k] = SharedResult(*bases[node], tuple(reversed(steps)))
    return found


def _is_step(node: Node) -> bool:
    """Tells whether a node is a view of its first argument, and depends on nothing else."""
    return (
        isinstance(node.target, torch._ops.OpOverload)
        and node.target.is_view
        and len(node.all_input_nodes) == 1
        and node.args[0] is node.all_input_nodes[0]
        and _is_real(node)
    )


def _is_real(node: Node) -> bool:
    meta = node.meta.get("val")
    return isinstance(meta, torch.Tensor) and not meta.is_complex() and not meta.is_neg()
