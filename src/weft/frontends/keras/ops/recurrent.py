"""Recurrent layers: SimpleRNN, GRU and LSTM, in one direction or both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from weft.frontends.keras.call import Call
from weft.frontends.keras.layer import Layer, layer_of
from weft.frontends.keras.ops.nonlinearity import FUNCTIONS, activation_of
from weft.frontends.keras.registry import translates
from weft.frontends.keras.weights import Weights
from weft.graph import Array, Value
from weft.graph.builder import CompileTimeConstant, Operand
from weft.graph.composites.recurrent import Cell, Direction, Function, elman_cell, gru_cell, lstm_cell, recurrent_layer
from weft.graph.composites.sequences import concat, element, reverse
from weft.support.dtypes import f32, i64

_GATES: Final = {"SimpleRNN": 1, "GRU": 3, "LSTM": 4}


def _in_weft_order(a: Array) -> Array:
    """Returns an LSTM's gates input, forget, candidate, output as input, output, forget, candidate."""
    i, f, g, o = np.split(a, 4, axis=-1)
    return np.concatenate([i, o, f, g], axis=-1)


@translates("SimpleRNN", "GRU", "LSTM")
def recurrent(c: Call) -> Operand | tuple[Operand, ...]:
    """A recurrent layer in one direction."""
    return _of_weights(c, c.weights.part("cell"))


def _of_weights(c: Call, cell: Weights) -> Operand | tuple[Operand, ...]:
    """Returns the outputs of all steps, or the last, and if asked for its states; the cell has the weights."""
    kind = c.layer.kind
    x = c.transpose(c.floats(rank=3), [1, 0, 2])
    backwards, mask = c.flag("go_backwards"), c.mask()
    counts = None if mask is None else c.transpose(mask, [1, 0])
    direction = _direction(c, cell, x, forward=not backwards)
    y, states = recurrent_layer(c, x, [direction], _cell(c, kind), mask=counts)
    ends = [element(c, s, 0, 0) for s in states]
    if c.flag("stateful"):
        c.states.left(c.layer.name, ends)
    shown = None if counts is None else _shown(c, counts, backwards=backwards)
    if c.flag("return_sequences"):
        steps = _zero_unless(c, shown, element(c, y, 1, 0))
        made = c.transpose(reverse(c, steps, None) if backwards else steps, [1, 0, 2])
    else:
        last = None if shown is None else element(c, shown if backwards else reverse(c, shown, None), 0, 0)
        made = _zero_unless(c, last, ends[0])
    return (made, *ends) if c.flag("return_state") else made


@translates("RNN")
def of_cell(c: Call) -> Operand | tuple[Operand, ...]:
    """A recurrent layer of one of Keras's own cells, or of several of them, of which each takes the output of the one before."""
    cell, weights = layer_of(c.layer.config.get("cell")), c.weights.part("cell")
    if cell.kind == "StackedRNNCells":
        return _stacked(c, cell.config.get("cells"), weights)
    return _of_weights(_call(c, cell, c.layer, c.positional, c.named), weights)


@translates("SimpleRNNCell", "GRUCell", "LSTMCell")
def one_step(c: Call) -> tuple[Operand, ...]:
    """A cell called by itself: one step, from its states to its output and the next states."""
    states = c.named.get("states", c.positional[1] if len(c.positional) > 1 else None)
    x = c.floats(rank=2)
    config = {**c.layer.config, "return_state": True}
    layer = replace(c.layer, kind=c.layer.kind.removesuffix("Cell"), config=config)
    steps, given = [c.reshape(x, [x.shape[0], 1, x.shape[1]])], {"initial_state": states}
    made = _of_weights(
        Call(c.evaluator, layer, c.weights, steps, given, c.images, c.masks, c.inner, c.strings, c.states), c.weights
    )
    return made if isinstance(made, tuple) else (made,)


def _stacked(c: Call, described: Any, weights: Weights) -> Operand | tuple[Operand, ...]:
    """Returns the outputs of layers of the *described* cells, one on top of another."""
    if not isinstance(described, list) or not described:
        c.fail("it does not say its cells", "save the model again")
    if _given_states(c) is not None:
        c.fail("first states of several cells are not supported", "build a layer of each cell")
    mask = c.mask()
    if mask is not None and c.flag("go_backwards"):
        c.fail("several cells backwards on a sequence with a mask are not supported", "build a layer of each cell")
    cells = [c.layer.parts.setdefault(k, layer_of(d)) for k, d in enumerate(described)]
    x, states = c.tensor(rank=3), list[Operand]()
    for k, held in enumerate(weights.of_layers([(one.kind, one.name) for one in cells], "cells")):
        config = {**c.layer.config, "go_backwards": k == 0 and c.flag("go_backwards")}
        if k < len(cells) - 1:
            config["return_sequences"] = True
        layer = replace(c.layer, name=f"{c.layer.name}.{k}", config=config, arrays=cells[k].arrays)
        made = _of_weights(_call(c, cells[k], layer, [x], {"mask": mask}), held)
        x, *ends = made if isinstance(made, tuple) else (made,)
        states += ends
    return (x, *states)


def _call(c: Call, cell: Layer, layer: Layer, positional: Sequence[Any], named: Mapping[str, Any]) -> Call:
    """Returns a call of the recurrent *layer* of one cell."""
    kind = cell.kind.removesuffix("Cell")
    if kind not in _GATES or kind == cell.kind:
        c.fail(f"its cell is a {cell.kind}, not one of Keras's own", "use an LSTMCell, a GRUCell or a SimpleRNNCell")
    whole = replace(layer, kind=kind, config={**cell.config, **layer.config})
    return Call(c.evaluator, whole, c.weights, positional, named, c.images, c.masks, c.inner, c.strings, c.states)


def _shown(c: Call, counts: Operand, *, backwards: bool) -> Operand | None:
    """Tells at which steps [time, batch, 1] the output is the state; it is zero at others. None for all of them.

    Those are the steps that count, or those from the first of them on: before it a layer puts out no state that it was given.
    """
    if c.flag("zero_output_for_mask"):
        return c.reshape(counts, [*counts.shape, 1])
    if _given_states(c) is None:
        return None
    ordered = reverse(c, counts, None) if backwards else counts
    begun = c.add("less", c.scalar(0, i64), c.add("cumsum", c.cast(ordered, i64), axis=0))
    return c.reshape(reverse(c, begun, None) if backwards else begun, [*counts.shape, 1])


def _zero_unless(c: Call, shown: Operand | None, x: Operand) -> Operand:
    return x if shown is None else c.add("where", shown, x, c.scalar(0, x.dtype))


def _cell(c: Call, kind: str) -> Cell:
    if kind == "LSTM":
        return lstm_cell()
    return gru_cell(reset_after_product=c.flag("reset_after", True)) if kind == "GRU" else elman_cell


def _direction(c: Call, cell: Weights, x: Operand, *, forward: bool) -> Direction:
    kind = c.layer.kind
    change = _in_weft_order if kind == "LSTM" else None
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
    given = _given_states(c)
    if given is None and c.flag("stateful"):
        return c.states.taken(c, c.layer.name, (x.shape[1], hidden), count)
    if given is None:
        return tuple(c.add("full", shape=(x.shape[1], hidden), value=0, dtype=f32) for _ in range(count))
    states = given if isinstance(given, list) else [given]
    if len(states) != count or not all(isinstance(s, Value | CompileTimeConstant) for s in states):
        c.fail(f"its initial_state is {given!r}, not {count} tensors", "call it with as many states as it has")
    return tuple(states)


def _given_states(c: Call) -> Any:
    """Returns the argument `initial_state`, None if there is none."""
    given = c.named.get("initial_state")
    return c.positional[1] if given is None and len(c.positional) > 1 else given


@translates("Bidirectional")
def bidirectional(c: Call) -> Operand | tuple[Operand, ...]:
    """A recurrent layer forwards and another backwards, their outputs merged, and if asked for the states of both."""
    x, mask, states = c.tensor(), c.mask(), _given_states(c)
    described = [c.layer.config.get(name) for name in ("layer", "backward_layer")]
    if not all(isinstance(d, dict) and isinstance(d.get("config"), dict) for d in described):
        c.fail("it does not say both its layers", "save the model again, with Keras 3")
    if states is not None and (not isinstance(states, list) or len(states) % 2):
        c.fail(f"its initial_state is {states!r}, not states of both layers", "call it with as many states as it has")
    half = 0 if states is None else len(states) // 2
    (forward, *ends), (backward, *other_ends) = (
        c.inner(d, c.weights.part(part), [x], {"mask": mask, "initial_state": given})
        for d, part, given in zip(
            described,
            ("forward_layer", "backward_layer"),
            (None, None) if states is None else (states[:half], states[half:]),
            strict=True,
        )
    )
    if forward.rank == x.rank:  # the steps of a layer that goes backwards come in the order in which it takes them
        by_step = [1, 0, *range(2, x.rank)]
        backward = c.transpose(reverse(c, c.transpose(backward, by_step), None), by_step)
    made = (*_merged(c, forward, backward), *ends, *other_ends)
    return made if len(made) > 1 else made[0]


def _merged(c: Call, forward: Operand, backward: Operand) -> tuple[Operand, ...]:
    """Returns the outputs of both directions as one tensor, or as they are."""
    if c.layer.config.get("merge_mode", "concat") is None:
        return forward, backward
    mode = c.text("merge_mode", "concat")
    if mode == "concat":
        return (concat(c, [forward, backward], forward.rank - 1),)
    if mode not in ("sum", "mul", "ave"):
        c.fail(f"merge_mode={mode!r} is not supported", "use one of concat, sum, mul, ave, None")
    y = c.add("mul" if mode == "mul" else "add", forward, backward)
    return (c.add("mul", y, c.scalar(0.5, f32)) if mode == "ave" else y,)
