"""Recurrent layers."""

from __future__ import annotations

from weft.frontends.coreml.call import Call
from weft.frontends.coreml.registry import translates
from weft.graph.builder import Builder, Operand
from weft.graph.composites.recurrent import Cell, Direction, Function, elman_cell, gru_cell, lstm_cell, recurrent_layer
from weft.graph.composites.sequences import concat

_ACTIVATIONS = {"tanh": "tanh", "sigmoid": "sigmoid", "relu": "relu"}


def _function(c: Call, name: str, default: str) -> Function:
    found = c.text(name, default)
    if found not in _ACTIVATIONS:
        c.fail(f"its activation {found!r} is not supported", f"use one of {', '.join(_ACTIVATIONS)}")
    return lambda b, x: b.add(_ACTIVATIONS[found], x)


def _ordered(b: Builder, x: Operand, order: tuple[int, ...]) -> Operand:
    """Returns the rows of gates in another order."""
    size = x.shape[0] // len(order)
    parts = b.add_many("split", x, axis=0, sizes=(size,) * len(order))
    return concat(b, [parts[k] for k in order], 0)


def _direction(
    c: Call, back: str, order: tuple[int, ...], functions: list[Function], states: tuple[Operand, ...]
) -> Direction:
    """Returns one direction, whose weights [gates * hidden, features] are called with *back* at their end."""
    weights = [c.transpose(_ordered(c, c.operand(f"{n}{back}"), order), [1, 0]) for n in ("weight_ih", "weight_hh")]
    bias = c.optional(f"bias{back}")
    bias = None if bias is None else _ordered(c, bias, order)
    return Direction(not back, weights[0], weights[1], functions, states, bias)


def _layer(c: Call, directions: list[Direction], cell: Cell) -> tuple[Operand, ...]:
    """Returns the outputs [time, batch, hidden], or the last alone, and the last states [batch, hidden]."""
    y, states = recurrent_layer(c, c.operand(), directions, cell)
    time, count, batch, hidden = y.shape
    whole = c.reshape(c.transpose(y, [0, 2, 1, 3]), [time, batch, hidden * count])
    finals = [c.reshape(c.transpose(s, [1, 0, 2]), [batch, hidden * count]) for s in states]
    last = c.reshape(finals[0], [1, *finals[0].shape])
    return (whole if c.flag("output_sequence") else last, *finals)


@translates("lstm")
def lstm(c: Call) -> tuple[Operand, ...]:
    """Long short-term memory, whose gates are input, forget, output, candidate."""
    if c.has("peephole") or c.has("clip"):
        c.fail("peepholes and clipping are not supported", "build the layer without them")
    direction = c.text("direction", "forward")
    functions = [
        _function(c, "recurrent_activation", "sigmoid"),
        _function(c, "cell_activation", "tanh"),
        _function(c, "activation", "tanh"),
    ]
    backs = {"forward": ("",), "bidirectional": ("", "_back")}.get(direction)
    if backs is None:
        c.fail(f"the direction {direction!r} is not supported", "reverse the sequence before and after the layer")
    states = [c.operand(n) for n in ("initial_h", "initial_c")]
    made: list[Direction] = []
    for k, back in enumerate(backs):
        size = states[0].shape[1] // len(backs)
        parts = [c.add("slice", s, starts=(k * size,), ends=((k + 1) * size,), axes=(1,)) for s in states]
        made.append(_direction(c, back, (0, 2, 1, 3), functions, tuple(parts)))
    return _layer(c, made, lstm_cell())


@translates("gru")
def gru(c: Call) -> tuple[Operand, ...]:
    """Gated recurrent units, whose gates are reset, update, candidate."""
    functions = [_function(c, "recurrent_activation", "sigmoid"), _function(c, "activation", "tanh")]
    reset_after = c.flag("reset_after")
    made = _direction(c, "", (1, 0, 2), functions, (c.operand("initial_h"),))
    return _layer(c, [made], gru_cell(reset_after_product=reset_after))


@translates("rnn")
def rnn(c: Call) -> tuple[Operand, ...]:
    """An Elman network."""
    made = _direction(c, "", (0,), [_function(c, "activation", "tanh")], (c.operand("initial_h"),))
    return _layer(c, [made], elman_cell)
