"""Recurrent layers as one operator."""

from __future__ import annotations

from weft.frontends.tensorflow_operators.call import Results
from weft.frontends.tflite.call import LiteCall
from weft.frontends.tflite.registry import translates
from weft.graph import Value
from weft.graph.builder import Builder, CompileTimeConstant, Operand
from weft.graph.composites.recurrent import Cell, Direction, Function, States, elman_cell, lstm_cell, recurrent_layer
from weft.graph.composites.sequences import concat, element
from weft.support.dtypes import f32

_GATES = (0, 3, 1, 2)
"""Where the weights of the gates input, output, forget and candidate are among input, forget, candidate and output."""


@translates("UNIDIRECTIONAL_SEQUENCE_LSTM")
def sequence_lstm(c: LiteCall) -> Results:
    """Long short-term memory over a sequence."""
    x = _steps_first(c, c.flag("time_major"))
    y, _ = recurrent_layer(c, x, [_lstm(c, x, 0, 18, True)], _lstm_cell(c, 18))
    return _batch_first(c, element(c, y, 1, 0), c.flag("time_major"))


@translates("BIDIRECTIONAL_SEQUENCE_LSTM")
def bidirectional_lstm(c: LiteCall) -> Results:
    """Long short-term memory over a sequence, forwards and backwards."""
    x = _steps_first(c, c.flag("time_major", True))
    if any(c.has(i) for i in range(39, 48)):
        c.fail("auxiliary inputs are not supported", "convert the model without them")
    directions = [_lstm(c, x, 0, 35, True), _lstm(c, x, 17, 37, False)]
    y, _ = recurrent_layer(c, x, directions, _lstm_cell(c, 35))
    both = [_batch_first(c, element(c, y, 1, k), c.flag("time_major", True)) for k in range(2)]
    return concat(c, both, 2) if c.flag("merge_outputs") else tuple(both)


def _lstm(c: LiteCall, x: Operand, first: int, state: int, forward: bool) -> Direction:
    """Returns one direction, whose inputs are *first* + 1 and those after it, and its states *state* and the next."""
    for k, what in ((1, "coupled gates"), (16, "projections")):
        if c.has(first + k) != (k == 1):
            c.fail(f"{what} are not supported", "convert the model without them")
    if state == 18 and any(c.has(i) for i in range(20, 24)):
        c.fail("normalised layers are not supported", "convert the model without them")
    inputs, recurrence = (_joined(c, first + begin) for begin in (1, 5))
    bias = concat(c, [c.tensor(first + 12 + k, 1) for k in _GATES], 0)
    peepholes = [c.tensor(first + 9 + k) for k in (0, 2, 1)] if c.has(first + 9) else []
    function = _function(c)
    hidden = recurrence.shape[0]
    initial = tuple([_state(c, x, i, hidden) for i in (state, state + 1)])
    return Direction(forward, inputs, recurrence, [_gate, function, function], initial, bias, None, peepholes)


def _lstm_cell(c: LiteCall, state: int) -> Cell:
    """Returns a step, whose memory is clipped; both states, inputs *state* and the next, are rounded where they are integers."""
    limit = c.number("cell_clip", 0.0)

    def kept(b: Builder, memory: Operand) -> Operand:
        bounds = [b.scalar(v, memory.dtype) for v in (-limit, limit)]
        return c.rounded(b, b.add("clip", memory, *bounds) if limit > 0 else memory, state + 1)

    cell = lstm_cell(kept=kept)

    def step(b: Builder, d: Direction, x: Operand, states: States) -> States:
        h, memory = cell(b, d, x, states)
        return c.rounded(b, h, state), memory

    return step


def _gate(b: Builder, x: Operand) -> Operand:
    return b.add("sigmoid", x)


def _function(c: LiteCall) -> Function:
    """Returns the function that an option names, for the builder of a step."""
    return lambda b, x: c.activated(x, "function", b)


def _joined(c: LiteCall, begin: int) -> Operand:
    """Returns the weights of four gates [units, in] as one matrix [in, gates * units]."""
    return concat(c, [c.weight(begin + k, [1, 0]) for k in _GATES], 1)


def _state(c: LiteCall, x: Operand, i: int, hidden: object) -> Operand:
    """Returns a state before the first step: a computed value, or zeros, which variables are at first."""
    found = c.inputs[i] if i < len(c.inputs) else None
    if isinstance(found, Value | CompileTimeConstant):
        return c.tensor(i, 2)
    return c.add("full", shape=(x.shape[1], hidden), value=0, dtype=f32)


@translates("UNIDIRECTIONAL_SEQUENCE_RNN")
def sequence_rnn(c: LiteCall) -> Results:
    """A recurrent layer with one function over a sequence."""
    x = _steps_first(c, c.flag("time_major"))
    y, _ = recurrent_layer(c, x, [_elman(c, x)], elman_cell)
    return _batch_first(c, element(c, y, 1, 0), c.flag("time_major"))


@translates("BIDIRECTIONAL_SEQUENCE_RNN")
def bidirectional_rnn(c: LiteCall) -> Results:
    """A recurrent layer with one function over a sequence, forwards and backwards."""
    x = _steps_first(c, c.flag("time_major"))
    if any(c.has(i) for i in range(9, 12)):
        c.fail("auxiliary inputs are not supported", "convert the model without them")
    y, _ = recurrent_layer(c, x, [_elman(c, x), _elman(c, x, 5, forward=False)], elman_cell)
    both = [_batch_first(c, element(c, y, 1, k), c.flag("time_major")) for k in range(2)]
    return concat(c, both, 2) if c.flag("merge_outputs") else tuple(both)


def _elman(c: LiteCall, x: Operand, first: int = 1, *, forward: bool = True) -> Direction:
    inputs, recurrence = c.weight(first, [1, 0]), c.weight(first + 1, [1, 0])
    initial = (_state(c, x, first + 3, recurrence.shape[0]),)
    return Direction(forward, inputs, recurrence, [_function(c)], initial, c.tensor(first + 2, 1))


def _steps_first(c: LiteCall, time_major: bool) -> Operand:
    x = c.tensor(0, 3)
    return x if time_major else c.transpose(x, [1, 0, 2])


def _batch_first(c: LiteCall, y: Operand, time_major: bool) -> Operand:
    return y if time_major else c.transpose(y, [1, 0, 2])
