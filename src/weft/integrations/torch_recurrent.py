"""Recurrent layers that `torch.compile` hands over whole, where no gradients are asked for.

    torch.gru(x, h, weights, ...)     becomes     torch.ops.weft.gru(x, h, weights, ...)

PyTorch's compiler leaves such layers to PyTorch, but for `torch._dynamo.config.allow_rnn`; then it writes out all of their steps,
for gradients too, which need them. An operator of another name it takes as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch
from torch.fx import GraphModule

from weft.frontends.torch.ops.primitives import RECURRENT
from weft.frontends.torch.recurrent_shapes import results_of_layer

_HAS_BIASES: Final = 3
"""The argument that a call on sequences of one length has as a truth value, and one on packed sequences as a list."""


def _defined() -> torch.library.Library:
    """Defines the operators: as PyTorch's, under other names."""
    made = torch.library.Library("weft", "FRAGMENT")
    for name in RECURRENT:
        schema = str(getattr(torch.ops.aten, name).input._schema)
        made.define(schema.removeprefix("aten::").replace(".input(", "(", 1))
        made.impl(name, getattr(torch, name), "CompositeExplicitAutograd")
        made.impl(name, results_of_layer, "Meta")
    return made


_LIBRARY: Final = _defined()


def with_whole_layers(module: GraphModule, inputs: Sequence[Any]) -> GraphModule:
    """Returns *module*, whose recurrent layers are made operators of Weft's unless gradients by *inputs* are asked for."""
    if torch.is_grad_enabled() and any(isinstance(v, torch.Tensor) and v.requires_grad for v in inputs):
        return module
    own = {getattr(torch, name): getattr(torch.ops.weft, name).default for name in RECURRENT}
    found = [n for n in module.graph.nodes if n.op == "call_function" and n.target in own]
    for n in found:
        if len(n.args) > _HAS_BIASES and isinstance(n.args[_HAS_BIASES], bool):
            n.target = own[n.target]
    if found:
        module.recompile()
    return module
