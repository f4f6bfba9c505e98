"""Places in memory that a program names, where Weft's values have none: PyTorch's descriptions of its tensors tell the order.

y = x.t();  aten.as_strided(y, ..., offset)     becomes     aten.as_strided(y.t(), ..., offset - that of y)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import torch
from torch.fx import Node

from weft.frontends.torch.complex_numbers import Complex
from weft.frontends.torch.source_lines import with_line
from weft.graph.builder import Builder
from weft.support.errors import ModelError


def in_memory_order(b: Builder, node: Node, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the tensor of an `as_strided` with its dimensions as they lie in memory, and the offset from its first element.

    Raises `ModelError` for one whose elements have others between them, or that is asked for elements before its first.
    """
    held, x = node.args[0].meta.get("val") if isinstance(node.args[0], Node) else None, arguments["self"]
    order = _order(held) if isinstance(held, torch.Tensor) else None
    if held is None or order is None:
        _refuse(node, "strides in a tensor that is not contiguous are not supported")
    given, own = arguments["storage_offset"], held.storage_offset()
    offset = 0 if given is None else given - own if isinstance(given, int) and isinstance(own, int) else given
    if isinstance(offset, int) and offset < 0:
        _refuse(node, f"elements before the first of a tensor, which is at {own} in memory, are not supported")
    if isinstance(x, Complex):
        return {"self": Complex(b.transpose(x.real, order), b.transpose(x.imaginary, order)), "storage_offset": offset}
    return {"self": b.transpose(x, order), "storage_offset": offset}


def _order(held: torch.Tensor) -> list[int] | None:
    """Returns the dimensions of a tensor as they lie in memory; None where there are gaps between its elements."""
    if held.is_contiguous():
        return list(range(held.dim()))
    if not all(isinstance(n, int) for n in (*held.shape, *held.stride())):
        return None
    order = sorted(range(held.dim()), key=lambda d: (-held.stride(d), -held.shape[d]))
    return order if held.permute(order).is_contiguous() else None


def _refuse(node: Node, message: str) -> NoReturn:
    source = with_line(f"aten.as_strided.default {node.name}", node)
    raise ModelError(message, where=source, hint="call contiguous() on it first")
