"""Inverses of views: the tensor that a view is of, with a new value of the view in its place.

y[:, 0]     select_scatter(y, part, 1, 0)           y.t()     part.t()
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import torch
from torch.fx import Graph, Node

A: Final = torch.ops.aten

PutBack: TypeAlias = Callable[[Graph, Node, Node, Sequence[Any]], Node]
"""Makes the tensor that a view is of, given that tensor as it was, the view's new value, and the view's other arguments."""


def all_of_it(graph: Graph, whole: Node, part: Node, others: Sequence[Any]) -> Node:
    """The view has all elements as they were."""
    return graph.call_function(A.alias.default, (part,))


def _reshaped(graph: Graph, whole: Node, part: Node, others: Sequence[Any]) -> Node:
    """The view has all elements, in their order, in another shape."""
    sizes = [_size(graph, whole, d, s) for d, s in enumerate(whole.meta["val"].shape)]
    return graph.call_function(A.reshape.default, (part, sizes))


def _size(graph: Graph, whole: Node, axis: int, size: Any) -> Any:
    if isinstance(size, int):
        return size
    made = graph.call_function(A.sym_size.int, (whole, axis))
    made.meta["val"] = size
    return made


def _by(op: Any) -> PutBack:
    """The view has dimensions exchanged by an operator that is its own inverse."""
    return lambda graph, whole, part, others: graph.call_function(op, (part, *others))


def _permuted(graph: Graph, whole: Node, part: Node, others: Sequence[Any]) -> Node:
    """The view has the dimensions in another order."""
    (order,) = others
    back = sorted(range(len(order)), key=lambda d: order[d] % len(order))
    return graph.call_function(A.permute.default, (part, back))


def _narrowed(graph: Graph, whole: Node, part: Node, others: Sequence[Any]) -> Node:
    """The view has a number of elements from a start on along a dimension."""
    axis, start, length = others
    is_symbolic = isinstance(start, Node) or isinstance(length, Node)
    end = graph.call_function(operator.add, (start, length)) if is_symbolic else start + length or None
    return graph.call_function(A.slice_scatter.default, (whole, part, axis, start, end))


def _scattered(op: Any) -> PutBack:
    """The view has some of the elements, which an operator replaces that takes the same arguments."""
    return lambda graph, whole, part, others: graph.call_function(op, (whole, part, *others))


def _chosen(pieces: Node, number: int) -> tuple[Any, tuple[Any, ...]]:
    """The pieces are the elements at each index along a dimension."""
    return A.select_scatter.default, (_axis_of(pieces, 1), number)


def _cut(pieces: Node, number: int) -> tuple[Any, tuple[Any, ...]]:
    """The pieces are ranges along a dimension, one behind the other."""
    axis = _axis_of(pieces, 2)
    sizes = [m.shape[axis] for m in pieces.meta["val"]]
    return A.slice_scatter.default, (axis, sum(sizes[:number]), sum(sizes[: number + 1]))


def _axis_of(pieces: Node, place: int) -> Any:
    return pieces.args[place] if len(pieces.args) > place else 0


PIECES: Final[Mapping[Any, Callable[[Node, int], tuple[Any, tuple[Any, ...]]]]] = {
    A.unbind.int: _chosen,
    **dict.fromkeys((A.split.Tensor, A.split_with_sizes.default, A.chunk.default), _cut),
}
"""What puts a piece back into the tensor that was cut, by the operators that cut: an operator, and its arguments."""

PUT_BACK: Final[Mapping[Any, PutBack]] = {
    **dict.fromkeys((A.alias.default, A.detach.default, A.detach_.default, A.contiguous.default), all_of_it),
    **dict.fromkeys((A.to.dtype, A.to.dtype_layout, A.to.device, A.to.other), all_of_it),
    **dict.fromkeys((A.view.default, A.reshape.default, A._unsafe_view.default, A.flatten.using_ints), _reshaped),
    **dict.fromkeys((A.unsqueeze.default, A.squeeze.default, A.squeeze.dim, A.squeeze.dims), _reshaped),
    **dict.fromkeys((A.unflatten.int, A.view_as.default), _reshaped),
    **{op: _by(op) for op in (A.t.default, A.numpy_T.default, A.mT.default, A.transpose.int)},
    A.permute.default: _permuted,
    A.narrow.default: _narrowed,
    A.select.int: _scattered(A.select_scatter.default),
    A.slice.Tensor: _scattered(A.slice_scatter.default),
    A.diagonal.default: _scattered(A.diagonal_scatter.default),
}
"""How tensors take back the views of them, by the operators that make the views."""
