"""Recurrent layers: SimpleRNN, GRU and LSTM, in one direction or both."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from weft.frontends.keras.call import Call
from weft.frontends.keras.ops.nonlinearity import FUNCTIONS, activation_of
from weft.frontends.keras.registry import translates
from weft.graph import Array, Value
from weft.graph.builder import CompileTimeConstant, Operand
from weft.graph.composites.recurrent import Cell, Direction, Function, elman_cell, gru_cell, lstm_cell, recurrent_layer
from weft.graph.composites.sequences import concat, element, reverse
from weft.support.dtypes import f32

_GATES: Final = {"SimpleRNN": 1, "GRU": 3, "LSTM": 4}


def _in_weft_order(a: Array) -> Array:
    """Returns an LSTM's gates input, forget, candidate, output as input, output, forget, candidate."""
    i, f, g, o = np.split(a, 4, axis=-1)
    return np.concatenate([i, o, f, g], axis=-1)


@translates("SimpleRNN", "GRU", "LSTM")
def recurrent(c: Call) -> Operand | tuple[Operand, ...]:
    """A recurrent layer in one direction: the outputs of all steps, or the last, and if asked for its states."""
    kind = c.layer.kind
    c.refuse("stateful", False)
    x = c.transpose(c.floats(rank=3), [1, 0, 2])
    backwards = c.flag("go_backwards")
    y, states = recurrent_layer(c, x, [_direction(c, kind, x, forward=not backwards)], _cell(c, kind))
    ends = [element(c, s, 0, 0) for s in states]
    made = ends[0]
    if c.flag("return_sequences"):
        steps = element(c, y, 1, 0)
        made = c.transpose(reverse(c, steps, None) if backwards else steps, [1, 0, 2])
    return (made, *ends) if c.flag("return_state") else made


def _cell(c: Call, kind: str) -> Cell:
    if kind == "LSTM":
        return lstm_cell()
    return gru_cell(reset_after_product=c.flag("reset_after", True)) if kind == "GRU" else elman_cell


def _direction(c: Call, kind: str, x: Operand, *, forward: bool) -> Direction:
    cell, change = c.weights.part("cell"), _in_weft_order if kind == "LSTM" else None
    kernel, recurrence = (c.array(cell, k, 2, change, k) for k in range(2))
    input_bias: Operand | None = None
    state_bias: Operand | None = None
    if c.flag("use_bias", True):
        if kind == "GRU" and c.flag("reset_after", True):
            input_bias, state_bias = (c.array(cell, 2, 2, lambda a, k=k: a[k], (2, k)) for k in range(2))  # type: ignore[misc]
        else:
            input_bias = c.array(cell, 2, 1, change, 2)
    hidden = recurrence.shape[0]
    if tuple(int(s.value) for s in recurrence.shape) != (hidden.value, hidden.value * _GATES[kind]):  # type: ignore[attr-defined]
        c.fail(f"its weights {recurrence!r} are not those of {_GATES[kind]} gates", "save the model again")
    activation: Function = FUNCTIONS[activation_of(c)]
    gate: Function = FUNCTIONS[activation_of(c, "recurrent_activation")] if kind != "SimpleRNN" else activation
    functions = {"SimpleRNN": [activation], "GRU": [gate, activation], "LSTM": [gate, activation, activation]}[kind]
    count = 2 if kind == "LSTM" else 1
    return Direction(forward, kernel, recurrence, functions, _initial(c, x, hidden, count), input_bias, state_bias)


def _initial(c: Call, x: Operand, hidden: Any, count: int) -> tuple[Operand, ...]:
    """Returns the states before the first step: those given, or zeros."""
    given = c.named.get("initial_state")
    given = c.positional[1] if given is None and len(c.positional) > 1 else given
    if given is None:
        return tuple(c.add("full", shape=(x.shape[1], hidden), value=0, dtype=f32) for _ in range(count))
    states = given if isinstance(given, list) else [given]
    if len(states) != count or not all(isinstance(s, Value | CompileTimeConstant) for s in states):
        c.fail(f"its initial_state is {given!r}, not {count} tensors", "call it with as many states as it has")
    return tuple(states)


@translates("Bidirectional")
def bidirectional(c: Call) -> Operand:
    """A recurrent layer forwards and another backwards, their outputs merged."""
    x = c.floats(rank=3)
    described = [c.layer.config.get(name) for name in ("layer", "backward_layer")]
    if not all(isinstance(d, dict) and isinstance(d.get("config"), dict) for d in described):
        c.fail("it does not say both its layers", "save the model again, with Keras 3")
    if c.named.get("initial_state") is not None or any(d["config"].get("return_state") for d in described):  # type: ignore[index]
        c.fail("states of layers in both directions are not supported", "build the model without return_state")
    forward, backward = (
        c.inner(d, c.weights.part(part), [x])
        for d, part in zip(described, ("forward_layer", "backward_layer"), strict=True)
    )
    if forward.rank == 3:  # the steps of a layer that goes backwards come in the order in which it takes them
        steps = reverse(c, c.transpose(backward, [1, 0, 2]), None)
        backward = c.transpose(steps, [1, 0, 2])
    mode = c.text("merge_mode", "concat")
    if mode == "concat":
        return concat(c, [forward, backward], forward.rank - 1)
    if mode not in ("sum", "mul", "ave"):
        c.fail(f"merge_mode={mode!r} is not supported", "use one of concat, sum, mul, ave")
    y = c.add("mul" if mode == "mul" else "add", forward, backward)
    return c.add("mul", y, c.scalar(0.5, f32)) if mode == "ave" else y
