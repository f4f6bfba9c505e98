"""Recurrent layers."""

from __future__ import annotations

from typing import Final

from weft.frontends.coreml.call import AGAIN, Call
from weft.frontends.coreml.registry import translates
from weft.graph.builder import Builder, Operand
from weft.graph.composites.recurrent import (
    Cell,
    Direction,
    Function,
    elman_cell,
    gru_cell,
    lstm_cell,
    ordered_gates,
    recurrent_layer,
)
from weft.graph.composites.sequences import reverse


def _scaled_tanh(b: Builder, x: Operand) -> Operand:
    """LeCun's function, of the constants that Core ML has for it (LeCun et al., "Efficient BackProp", 1998)."""
    inner = b.add("tanh", b.add("mul", x, b.scalar(2 / 3, x.dtype)))
    return b.add("mul", inner, b.scalar(1.7159, x.dtype))


def _hard_sigmoid(b: Builder, x: Operand) -> Operand:
    return b.add("hard_sigmoid", x, alpha=0.2, beta=0.5)


def _operator(name: str) -> Function:
    return lambda b, x: b.add(name, x)


_ACTIVATIONS: Final[dict[str, Function]] = {
    **{name: _operator(name) for name in ("tanh", "sigmoid", "relu")},
    "linear": lambda _, x: x,
    "scaled_tanh": _scaled_tanh,
    "hard_sigmoid": _hard_sigmoid,
    "sigmoid_hard": _hard_sigmoid,
}


def _function(c: Call, name: str, default: str) -> Function:
    found = c.text(name, default).lower()
    if found not in _ACTIVATIONS:
        c.fail(f"its activation {found!r} is not supported", f"use one of {', '.join(_ACTIVATIONS)}")
    return _ACTIVATIONS[found]


def _steps(c: Call) -> Operand:
    """Returns the sequence in the order in which a layer of one direction takes it, which is that of its outputs too."""
    found = c.text("direction", "forward")
    if found not in ("forward", "reverse"):
        c.fail(f"the direction {found!r} is not supported", AGAIN)
    return c.operand() if found == "forward" else reverse(c, c.operand(), None)


def _direction(
    c: Call,
    order: tuple[int, ...],
    functions: list[Function],
    states: tuple[Operand, ...],
    back: str = "",
) -> Direction:
    """Returns one direction, whose weights [gates * hidden, features] are called with *back* at their end."""
    weights = [
        c.transpose(ordered_gates(c, c.operand(f"{n}{back}"), order), [1, 0]) for n in ("weight_ih", "weight_hh")
    ]
    biases = [c.optional(f"{n}{back}") for n in ("input_bias", "bias")]
    given = [None if v is None else ordered_gates(c, v, order) for v in biases]
    peepholes = c.optional(f"peephole{back}")
    peeps = () if peepholes is None else c.add_many("split", peepholes, axis=0, sizes=(peepholes.shape[0] // 3,) * 3)
    held = [peeps[k] for k in (0, 2, 1)] if peeps else []
    return Direction(not back, weights[0], weights[1], functions, states, given[0], given[1], held)


def _layer(c: Call, x: Operand, directions: list[Direction], cell: Cell) -> tuple[Operand, ...]:
    """Returns the outputs [time, batch, hidden], or the last alone, and the last states [batch, hidden]."""
    y, states = recurrent_layer(c, x, directions, cell)
    time, count, batch, hidden = y.shape
    whole = c.reshape(c.transpose(y, [0, 2, 1, 3]), [time, batch, hidden * count])
    finals = [c.reshape(c.transpose(s, [1, 0, 2]), [batch, hidden * count]) for s in states]
    last = c.reshape(finals[0], [1, *finals[0].shape])
    return (whole if c.flag("output_sequence") else last, *finals)


@translates("lstm")
def lstm(c: Call) -> tuple[Operand, ...]:
    """Long short-term memory, whose gates are input, forget, output, candidate, and peepholes input, forget, output."""
    if c.has("clip"):
        c.fail("clipped cells are not supported", "build the layer without them")
    functions = [
        _function(c, "recurrent_activation", "sigmoid"),
        _function(c, "cell_activation", "tanh"),
        _function(c, "activation", "tanh"),
    ]
    states = [c.operand(n) for n in ("initial_h", "initial_c")]
    if c.text("direction", "forward") != "bidirectional":
        made = _direction(c, (0, 2, 1, 3), functions, tuple(states))
        return _layer(c, _steps(c), [made], lstm_cell())
    halves = [c.add_many("split", s, axis=1, sizes=(s.shape[1] // 2,) * 2) for s in states]
    both = [
        _direction(c, (0, 2, 1, 3), functions, tuple([h[k] for h in halves]), back)
        for k, back in enumerate(("", "_back"))
    ]
    return _layer(c, c.operand(), both, lstm_cell())


@translates("gru")
def gru(c: Call) -> tuple[Operand, ...]:
    """Gated recurrent units, whose gates are reset, candidate, update."""
    functions = [_function(c, "recurrent_activation", "sigmoid"), _function(c, "activation", "tanh")]
    made = _direction(c, (2, 0, 1), functions, (c.operand("initial_h"),))
    return _layer(c, _steps(c), [made], gru_cell(reset_after_product=c.flag("reset_after")))


@translates("rnn")
def rnn(c: Call) -> tuple[Operand, ...]:
    """An Elman network."""
    made = _direction(c, (0,), [_function(c, "activation", "tanh")], (c.operand("initial_h"),))
    return _layer(c, _steps(c), [made], elman_cell)
