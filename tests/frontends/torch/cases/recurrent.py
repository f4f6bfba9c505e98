"""Recurrent layers: a few steps, which are written out, and many, which are a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from tests.frontends.torch.cases.tensors import Case
from tests.frontends.torch.modules import numbers

GATES = {"rnn_relu": 1, "rnn_tanh": 1, "gru": 3, "lstm": 4}
FEATURES, HIDDEN, BATCH = 5, 6, 3


class Layer(torch.nn.Module):  # type: ignore[misc]
    """Layers of one kind; their weights are small, so that states do not grow."""

    def __init__(
        self,
        kind: str,
        count: int = 1,
        *,
        both: bool = False,
        biases: bool = True,
        batch_first: bool = False,
        projected: int = 0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        name = {"gru": "GRU", "lstm": "LSTM"}.get(kind, "RNN")
        options: dict[str, Any] = {"nonlinearity": kind.removeprefix("rnn_")} if name == "RNN" else {}
        options |= {"proj_size": projected} if projected else {}
        made: Callable[..., Any] = getattr(torch.nn, name)
        how = {"num_layers": count, "bias": biases, "batch_first": batch_first, "bidirectional": both}
        self.layer = made(FEATURES, HIDDEN, dropout=dropout, **how, **options)
        for k, (key, w) in enumerate(self.layer.named_parameters()):
            w.data = numbers(*w.shape, seed=len(key) + k) * 0.3

    def forward(self, x: torch.Tensor, *states: torch.Tensor) -> Any:
        return self.layer(x, states[0] if len(states) == 1 else states or None)


def steps(count: int) -> torch.Tensor:
    """Returns a sequence [time, batch, features]."""
    return numbers(count, BATCH, FEATURES)


def state(count: int, size: int = HIDDEN, seed: int = 7) -> torch.Tensor:
    """Returns states before the first step, of *count* directions of layers."""
    return numbers(count, BATCH, size, seed=seed)


CASES: dict[str, Case] = {
    "RNN of many steps": (Layer("rnn_tanh"), [steps(20), state(1)]),
    "RNN that rectifies": (Layer("rnn_relu", 2, both=True, biases=False), [steps(20)]),
    "GRU of few steps": (Layer("gru", both=True, batch_first=True), [steps(4).transpose(0, 1)]),
    "GRU of layers": (Layer("gru", 2, both=True), [steps(20), state(4)]),
    "GRU without a batch": (Layer("gru", biases=False), [steps(20)[:, 0]]),
    "LSTM of few steps": (Layer("lstm", biases=False), [steps(4)]),
    "LSTM of layers": (
        Layer("lstm", 3, both=True, batch_first=True, dropout=0.5),
        [steps(20).transpose(0, 1), state(6), state(6, seed=8)],
    ),
    "LSTM with a projection": (Layer("lstm", 2, both=True, projected=4), [steps(20), state(4, 4), state(4, seed=8)]),
    "LSTM without biases": (Layer("lstm", projected=2, biases=False), [steps(20)]),
    "LSTM without a batch": (Layer("lstm", both=True), [steps(20)[:, 0], state(2)[:, 0], state(2, seed=8)[:, 0]]),
}
