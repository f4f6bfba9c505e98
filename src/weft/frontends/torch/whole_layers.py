"""Recurrent layers stay whole while PyTorch traces a program, which would write out all of their steps.

with shapes_of_recurrent_layers():                      no step is run, of which PyTorch would only learn shapes
    torch.export.export(model, inputs)

torch.gru(x, h, weights, ...)     becomes     torch.ops.weft.gru(x, h, weights, ...)

The second is for `torch.compile`, which leaves such layers to PyTorch, but for `torch._dynamo.config.allow_rnn`; then AOTAutograd
takes them apart, for gradients too, which need all steps. An operator of another name it takes as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch import Tensor
from torch.fx import GraphModule

from weft.frontends.torch.ops.primitives import RECURRENT

_KEYS: Final = (torch._C.DispatchKey.CompositeImplicitAutograd, torch._C.DispatchKey.Autograd)
"""Where PyTorch's tracing looks for the decomposition of an operator."""

_HAS_BIASES: Final = 3
"""The argument that a call on sequences of one length has as a truth value, and one on packed sequences as a list."""


@contextmanager
def shapes_of_recurrent_layers() -> Iterator[None]:
    """Has recurrent layers give tensors of their results' shapes, and compute nothing; for tracing alone."""
    operators: list[Any] = [getattr(torch.ops.aten, name).input for name in RECURRENT]
    before = [dict(op.py_kernels) for op in operators]
    try:
        for op in operators:
            op.py_kernels.update(dict.fromkeys(_KEYS, _results))
            op._dispatch_cache.clear()
        yield
    finally:
        for op, kernels in zip(operators, before, strict=True):
            op.py_kernels.clear()
            op.py_kernels.update(kernels)
            op._dispatch_cache.clear()


def with_whole_layers(module: GraphModule, inputs: Sequence[Any]) -> GraphModule:
    """Returns *module*, whose recurrent layers are made operators of Weft's unless gradients by *inputs* are asked for."""
    if torch.is_grad_enabled() and any(isinstance(v, Tensor) and v.requires_grad for v in inputs):
        return module
    own = {getattr(torch, name): getattr(torch.ops.weft, name).default for name in RECURRENT}
    found = [n for n in module.graph.nodes if n.op == "call_function" and n.target in own]
    for n in found:
        if len(n.args) > _HAS_BIASES and isinstance(n.args[_HAS_BIASES], bool):
            n.target = own[n.target]
    if found:
        module.recompile()
    return module


def _results(  # the arguments are those of PyTorch's operators
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


def _defined() -> torch.library.Library:
    """Defines the operators of Weft's: as PyTorch's, under other names."""
    made = torch.library.Library("weft", "FRAGMENT")
    for name in RECURRENT:
        schema = str(getattr(torch.ops.aten, name).input._schema)
        made.define(schema.removeprefix("aten::").replace(".input(", "(", 1))
        made.impl(name, getattr(torch, name), "CompositeExplicitAutograd")
        made.impl(name, _results, "Meta")
    return made


_LIBRARY: Final = _defined()
