"""Operators without a translation are decomposed into others, by PyTorch's own decompositions, before a program is imported.

    aten.huber_loss(x, y)   becomes   aten.sub, aten.abs, aten.lt, aten.mul, aten.where, aten.mean

Those of the table are kept whole: Weft's composites and operators compute them better than their parts would. An operator neither
in the table nor decomposed is refused by the importer, with all others of its kind.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

import torch
from torch._decomp import decomposition_table
from torch._ops import HigherOrderOperator
from torch.export import ExportedProgram, default_decompositions
from torch.fx import Graph, GraphModule, Node

from weft.frontends.torch.complex_numbers import is_known
from weft.frontends.torch.fused_operators import fused_operators
from weft.frontends.torch.gradients import gradients
from weft.frontends.torch.ops.primitives import AS_ATEN
from weft.frontends.torch.region_calls import CONTROL_FLOW
from weft.frontends.torch.whole_layers import shapes_of_recurrent_layers
from weft.support.errors import ModelError

WRAPPERS: Final = {
    "higher_order.wrap_with_set_grad_enabled": (1, 2),
    "higher_order.wrap_with_autocast": (4, 5),
    "higher_order.invoke_subgraph": (0, 2),
}
"""Operators that run a graph, in another mode or as it is; which argument that is, and the first of its own arguments."""

CALLERS: Final = {
    "higher_order.auto_functionalized": 0,
    "higher_order.auto_functionalized_v2": 0,
    "higher_order.with_effects": 1,
}
"""Operators that call another, which changes its arguments or has effects; which argument that is."""

_IS_TRAINING: Final = 5
"""The argument of a batch norm that tells whether it is of training."""

_CHECKS: Final = ("aten._linalg_check_errors.default",)
"""Operators that make no tensors, and raise an error of PyTorch's where here results are NaN and `info` is set."""

LEFT_WHOLE: Final[frozenset[str]] = frozenset(
    {
        "aten._assert_async.msg",
        "aten._assert_scalar.default",
        "aten.sym_constrain_range.default",
        "aten.lift.default",
        "aten.lift_fresh.default",
    }
)
"""Checks, whose decompositions are no simpler, and constants, which PyTorch's tracing has to see before they are decomposed."""


def needs_decomposition(module: GraphModule) -> bool:
    """Tells whether a graph without changes in place has operators that are to be decomposed."""
    return any(_is_to_decompose(n) for n in _calls(module, live_nodes))


def decomposed(program: ExportedProgram) -> ExportedProgram:
    """Returns *program* with operators of the table alone, as far as there are decompositions, and without changes in place.

    Raises `ModelError` where PyTorch itself can't decompose the program.
    """
    with shapes_of_recurrent_layers(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own passes warn about one another
        try:
            return program.run_decompositions(dict(decompositions()))
        except Exception as error:  # of whatever kind: it is PyTorch's tracing of the user's program
            message = f"PyTorch can't decompose the program: {_first_line(error)}"
            raise ModelError(message, hint="see that program.run_decompositions() succeeds") from error


@lru_cache(maxsize=1)
def decompositions() -> dict[Any, Callable[..., Any]]:
    """Returns PyTorch's decompositions of all operators that the table does not have."""
    known = {**decomposition_table, **dict(default_decompositions().items()), **fused_operators(), **gradients()}
    return {op: how for op, how in known.items() if not is_known(name_of(op)) and name_of(op) not in LEFT_WHOLE}


def name_of(target: Any) -> str:
    """Names an operator: `aten.relu.default`, `_operator.mul`."""
    if isinstance(target, torch._ops.OpOverload):
        name = str(target)
        return AS_ATEN.get(name, name)
    module, name = getattr(target, "__module__", ""), getattr(target, "__name__", str(target))
    return f"higher_order.{name}" if isinstance(target, HigherOrderOperator) else f"{module}.{name}"


def is_mutable(target: object) -> bool:
    """Tells whether an operator changes the elements of one of its arguments."""
    is_declared = isinstance(target, torch._ops.OpOverload) and bool(target._schema.is_mutable)
    return is_declared and target is not torch.ops.aten.detach_.default


def is_effect(node: Node) -> bool:
    """Tells whether a call is a check, which a program keeps in order with others by tokens, or takes the token of one."""
    if node.target is operator.getitem and isinstance(node.args[0], Node):
        return is_effect(node.args[0])
    return name_of(node.target) == "higher_order.with_effects" and name_of(node.args[1]) in _CHECKS


def unknown_operators(module: GraphModule, unread: Collection[Node] = ()) -> dict[str, list[Node]]:
    """Returns the nodes of each operator that the table does not have, but for those that stay *unread*, or only serve checks."""
    missing: dict[str, list[Node]] = {}
    for n in _calls(module, live_nodes):
        if not is_known(name_of(n.target)) and n not in unread:
            missing.setdefault(_called_by(n), []).append(n)
    return dict(sorted(missing.items()))


def _called_by(node: Node) -> str:
    """Names the operator of a call: the user's own where PyTorch has wrapped it."""
    name = name_of(node.target)
    return name_of(node.args[CALLERS[name]]) if name in CALLERS else name


def live_nodes(graph: Graph) -> list[Node]:
    """Returns the nodes that an output of *graph*, which changes nothing in place, depends on: its checks are not among them."""
    live: dict[Node, None] = {}
    for n in reversed(graph.nodes):
        if n.op == "output" or any(u in live for u in n.users):
            live[n] = None
    return list(reversed(live))


def _calls(module: GraphModule, among: Callable[[Graph], Iterable[Node]] = lambda g: g.nodes) -> Iterator[Node]:
    """Yields the calls of operators in a graph, and in those that it runs in another mode, as branches or as loops.

    *among* chooses the nodes of a graph that are looked at.
    """
    for n in among(module.graph):
        if n.op == "call_function" and runs_graphs(n):
            for held in n.all_input_nodes:
                found = operator.attrgetter(held.target)(module) if held.op == "get_attr" else None
                if isinstance(found, GraphModule):
                    yield from _calls(found, among)
        elif n.op == "call_function" and not is_effect(n):
            yield n


def runs_graphs(node: Node) -> bool:
    """Tells whether a call runs graphs that are its arguments."""
    name = name_of(node.target)
    return name in WRAPPERS or name in CONTROL_FLOW


def _is_to_decompose(node: Node) -> bool:
    is_training = node.target is torch.ops.aten.batch_norm.default and bool(node.args[_IS_TRAINING])
    return not is_known(name_of(node.target)) or is_training


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
