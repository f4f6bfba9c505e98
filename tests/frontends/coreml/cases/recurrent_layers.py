"""Cases of recurrent layers, against formulas of their steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from coremltools.converters.mil.mil import Builder
from tests.frontends.coreml.cases.entering import case, f


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "tanh": np.tanh,
    "sigmoid": sigmoid,
    "relu": lambda x: np.maximum(x, 0),
    "linear": lambda x: x,
    "hard_sigmoid": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "sigmoid_hard": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "scaled_tanh": lambda x: 1.7159 * np.tanh(2 / 3 * x),
}


def run(x: Any, step: Callable[..., Any], states: tuple[Any, ...], *, back: bool = False) -> Any:
    """Returns the outputs of all steps, in the order in which they were taken, and the last states."""
    made = []
    for row in x[::-1] if back else x:
        states = step(row, *states)
        made.append(states[0])
    return np.stack(made), *states


def weights(gates: int) -> dict[str, Any]:
    return {"weight_ih": f(gates * 3, 4), "weight_hh": f(gates * 3, 3), "bias": f(gates * 3)}


STEPS, STATE, MEMORY = f(5, 2, 4), f(2, 3), f(2, 3)
ELMAN, GATED, LONG, LONG_BACK = weights(1), weights(3), weights(4), weights(4)


def elman(kind: str, *, back: bool) -> Callable[..., Any]:
    def step(x: Any, h: Any) -> Any:
        made = FUNCTIONS[kind](x @ ELMAN["weight_ih"].T + h @ ELMAN["weight_hh"].T + ELMAN["bias"])
        return (made,)

    return lambda x, h: run(x, step, (h,), back=back)


def gated(*, after: bool, back: bool = False, kind: str = "tanh", input_bias: Any = 0) -> Callable[..., Any]:
    """Returns the formula of a GRU, whose gates are reset, output, update."""

    def step(x: Any, h: Any) -> Any:
        (xr, xo, xz) = np.split(x @ GATED["weight_ih"].T + input_bias, 3, -1)
        wr, wo, wz = np.split(GATED["weight_hh"], 3)
        br, bo, bz = np.split(GATED["bias"], 3)
        r, z = sigmoid(xr + h @ wr.T + br), sigmoid(xz + h @ wz.T + bz)
        o = FUNCTIONS[kind](xo + (r * (h @ wo.T + bo) if after else (r * h) @ wo.T + bo))
        return ((1 - z) * o + z * h,)

    return lambda x, h: run(x, step, (h,), back=back)


def long(w: dict[str, Any], *, peep: Any = None, clip: float = math.inf, kind: str = "tanh", back: bool = False) -> Any:
    """Returns the formula of an LSTM, whose gates are input, forget, output, cell."""
    pi, pf, po = np.split(peep, 3) if peep is not None else (0, 0, 0)

    def step(x: Any, h: Any, c: Any) -> Any:
        i, g, o, z = np.split(x @ w["weight_ih"].T + h @ w["weight_hh"].T + w["bias"], 4, -1)
        c = np.clip(sigmoid(g + pf * c) * c + sigmoid(i + pi * c) * FUNCTIONS[kind](z), -clip, clip)
        return sigmoid(o + po * c) * np.tanh(c), c

    return lambda x, h, c: run(x, step, (h, c), back=back)


for _kind in ("tanh", "relu", "sigmoid", "linear", "sigmoid_hard", "scaled_tanh"):
    case(
        f"rnn.{_kind}",
        lambda a, b, k=_kind: Builder.rnn(x=a, initial_h=b, **ELMAN, activation=k, output_sequence=True),
        STEPS[:3] * 0.3,
        STATE,
        wanted=elman(_kind, back=False),
    )
case(
    "rnn.back",
    lambda a, b: Builder.rnn(x=a, initial_h=b, **ELMAN, direction="reverse", output_sequence=True),
    STEPS,
    STATE,
    wanted=elman("tanh", back=True),
)
case(
    "gru",
    lambda a, b: Builder.gru(x=a, initial_h=b, **GATED, output_sequence=True),
    STEPS,
    STATE,
    wanted=gated(after=False),
)
case(
    "gru.back",
    lambda a, b: Builder.gru(x=a, initial_h=b, **GATED, direction="reverse", output_sequence=True),
    STEPS,
    STATE,
    wanted=gated(after=False, back=True),
)
INPUT_BIAS = f(9)
case(
    "gru.after",
    lambda a, b: Builder.gru(x=a, initial_h=b, **GATED, output_sequence=True, reset_after=True, input_bias=INPUT_BIAS),
    STEPS,
    STATE,
    wanted=gated(after=True, input_bias=INPUT_BIAS),
    version=18,
)
case(
    "gru.last",
    lambda a, b: Builder.gru(x=a, initial_h=b, **GATED, activation="relu"),
    STEPS * 0.3,
    STATE,
    wanted=lambda x, h: tuple(v[-1:] if k == 0 else v for k, v in enumerate(gated(after=False, kind="relu")(x, h))),
)
case(
    "lstm",
    lambda a, b, c: Builder.lstm(x=a, initial_h=b, initial_c=c, **LONG, output_sequence=True),
    STEPS,
    STATE,
    MEMORY,
    wanted=long(LONG),
)
case(
    "lstm.back",
    lambda a, b, c: Builder.lstm(x=a, initial_h=b, initial_c=c, **LONG, output_sequence=True, direction="reverse"),
    STEPS,
    STATE,
    MEMORY,
    wanted=long(LONG, back=True),
)
PEEP = f(9)
case(
    "lstm.peephole",
    lambda a, b, c: Builder.lstm(x=a, initial_h=b, initial_c=c, **LONG, output_sequence=True, peephole=PEEP),
    STEPS,
    STATE,
    MEMORY,
    wanted=long(LONG, peep=PEEP),
)
case(
    "lstm.linear",
    lambda a, b, c: Builder.lstm(
        x=a, initial_h=b, initial_c=c, **LONG, output_sequence=True, cell_activation="hard_sigmoid"
    ),
    STEPS,
    STATE,
    MEMORY,
    wanted=long(LONG, kind="hard_sigmoid"),
)


def both(x: Any, h: Any, c: Any) -> Any:
    one = long(LONG)(x, h[:, :3], c[:, :3])
    two = long(LONG_BACK, back=True)(x, h[:, 3:], c[:, 3:])
    last = [np.concatenate([a, b], -1) for a, b in zip(one[1:], two[1:], strict=True)]
    return np.concatenate([one[0], two[0][::-1]], -1), *last


case(
    "lstm.both",
    lambda a, b, c: Builder.lstm(
        x=a,
        initial_h=b,
        initial_c=c,
        **LONG,
        **{f"{k}_back": v for k, v in LONG_BACK.items()},
        direction="bidirectional",
        output_sequence=True,
    ),
    STEPS,
    np.concatenate([STATE, MEMORY], -1),
    np.concatenate([MEMORY, STATE], -1),
    wanted=both,
)
