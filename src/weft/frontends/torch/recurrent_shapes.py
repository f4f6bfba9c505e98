"""While a program is traced, recurrent layers are not run step by step, of which PyTorch would only learn their results' shapes.

with shapes_of_recurrent_layers():
    torch.export.export(model, inputs)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch import Tensor

from weft.frontends.torch.ops.primitives import RECURRENT

_KEYS: Final = (torch._C.DispatchKey.CompositeImplicitAutograd, torch._C.DispatchKey.Autograd)
"""Where PyTorch's tracing looks for what an operator is made of."""


@contextmanager
def shapes_of_recurrent_layers() -> Iterator[None]:
    """Has recurrent layers give tensors of their results' shapes, and compute nothing; for tracing alone."""
    operators: list[Any] = [getattr(torch.ops.aten, name).input for name in RECURRENT]
    before = [dict(op.py_kernels) for op in operators]
    try:
        for op in operators:
            op.py_kernels.update(dict.fromkeys(_KEYS, results_of_layer))
            op._dispatch_cache.clear()
        yield
    finally:
        for op, kernels in zip(operators, before, strict=True):
            op.py_kernels.clear()
            op.py_kernels.update(kernels)
            op._dispatch_cache.clear()


def results_of_layer(  # the arguments are those of PyTorch's operators
    input: Tensor,
    hx: Tensor | Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, ...]:
    """Returns the outputs, which lie in memory step after step, and the last states."""
    states = [hx] if isinstance(hx, Tensor) else list(hx)
    steps = input.transpose(0, 1) if batch_first else input
    outputs = input.new_empty(*steps.shape[:2], states[0].shape[-1] * (1 + bidirectional))
    return outputs.transpose(0, 1) if batch_first else outputs, *[torch.empty_like(s) for s in states]
