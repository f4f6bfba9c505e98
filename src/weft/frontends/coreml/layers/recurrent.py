"""Recurrent layers on sequences [time, batch, features, 1, 1], with the first and last states [1, batch, hidden, 1, 1]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weft.frontends.coreml.call import AGAIN
from weft.frontends.coreml.layer_table import layer
from weft.frontends.coreml.network_call import NetworkCall
from weft.frontends.protobuf_message import Message
from weft.graph.builder import Builder, Operand, static_sizes
from weft.graph.composites.recurrent import (
    Cell,
    Direction,
    Function,
    elman_cell,
    gru_cell,
    lstm_cell,
    recurrent_layer,
)
from weft.graph.composites.sequences import concat, reverse
from weft.ir import ExprLike

_PLAIN: Final = {10: "relu", 30: "tanh", 40: "sigmoid", 60: "softsign", 70: "softplus"}
_GATES: Final = (0, 3, 1, 2)
"""Of Core ML's gates, input, forget, candidate and output, those in Weft's order."""


def _function(c: NetworkCall, m: Message) -> Function:
    """Returns an activation function of no parameters, or a line."""
    kind = next(iter(m.field_numbers), 0)
    if kind not in (*_PLAIN, 5, 41):
        c.fail(f"its activation {kind} is not supported", "use tanh, sigmoid, relu, linear or hard sigmoid")
    alpha, beta = m.inner(kind).number(1), m.inner(kind).number(2)

    def apply(b: Builder, x: Operand) -> Operand:
        if kind == 5:
            return b.add("add", b.add("mul", x, b.scalar(alpha, x.dtype)), b.scalar(beta, x.dtype))
        return b.add("hard_sigmoid", x, alpha=alpha, beta=beta) if kind == 41 else b.add(_PLAIN[kind], x)

    return apply


@layer(400, "simpleRecurrent")
def simple_recurrent(c: NetworkCall) -> tuple[Operand, ...]:
    """An Elman network of one direction; its results are the outputs, and the last of them."""
    gates = _Gates((30,), (31,), (32,) if c.params.flag(20) else ())
    functions = [_function(c, m) for m in c.params.messages(10)]
    return _of_one_direction(c, gates, functions, elman_cell, 1)


@layer(410, "gru")
def gru(c: NetworkCall) -> tuple[Operand, ...]:
    """Gated recurrent units of one direction; their results are the outputs, and the last of them."""
    gates = _Gates((30, 31, 32), (50, 51, 52), (70, 71, 72) if c.params.flag(20) else ())
    functions = [_function(c, m) for m in c.params.messages(10)]
    return _of_one_direction(c, gates, functions, gru_cell(reset_after_product=False), 2)


def _of_one_direction(
    c: NetworkCall, gates: _Gates, functions: list[Function], cell: Cell, count: int
) -> tuple[Operand, ...]:
    if len(functions) != count:
        c.fail(f"it has {len(functions)} activations", AGAIN)
    rows = _rows(c, backwards=c.params.flag(100))
    made = gates.direction(c, c.params, functions, _states(c, rows, 0, 1))
    return _results(c, rows, [made], cell, whole=c.params.flag(15))


@layer(420, "uniDirectionalLSTM")
def lstm(c: NetworkCall) -> tuple[Operand, ...]:
    """A layer of one direction; its results are the outputs, and the last output and memory."""
    rows = _rows(c, backwards=c.params.flag(100))
    made = _memory(c, rows, 0, list(c.params.messages(10)), c.params.inner(20))
    return _results(c, rows, [made], _cell(c, rows), whole=c.params.inner(15).flag(10))


@layer(430, "biDirectionalLSTM")
def lstm_of_both_directions(c: NetworkCall) -> tuple[Operand, ...]:
    """A layer of both directions, whose outputs stand side by side, with the last states of each."""
    weights, rows = list(c.params.messages(20)), _rows(c, backwards=False)
    if len(weights) != 2:
        c.fail(f"it has the weights of {len(weights)} directions", AGAIN)
    functions = [list(c.params.messages(n)) for n in (10, 11)]
    made = [_memory(c, rows, k, functions[k] or functions[0], weights[k]) for k in range(2)]
    return _results(c, rows, made, _cell(c, rows), whole=c.params.inner(15).flag(10))


def _rows(c: NetworkCall, *, backwards: bool) -> Operand:
    """Returns the sequence [time, batch, features] in the order in which one direction takes it, that of its outputs too."""
    if c.blobs_have_five_dimensions:
        c.fail("recurrent layers in networks of before 2019 are not supported", "convert the model to an mlprogram")
    x = c.input(rank=5)
    rows = c.reshape(x, [x.shape[0], x.shape[1], c.integer(1)])
    return reverse(c, rows, None) if backwards else rows


@dataclass(frozen=True)
class _Gates:
    """The numbers of the fields of weights [hidden, features], of those of the state, and of biases, in Weft's order of gates."""

    inputs: tuple[int, ...]
    recurrences: tuple[int, ...]
    biases: tuple[int, ...]

    def direction(
        self,
        c: NetworkCall,
        w: Message,
        functions: list[Function],
        states: tuple[Operand, ...],
        *,
        forward: bool = True,
        extra: Operand | None = None,
        peepholes: tuple[Operand, ...] = (),
    ) -> Direction:
        """Returns one direction with its weights; *extra* is added to its bias."""
        features, hidden = c.integer(1), c.integer(2)
        inputs = concat(c, [c.weight(n, (hidden, features), w) for n in self.inputs], 0)
        recurrence = concat(c, [c.weight(n, (hidden, hidden), w) for n in self.recurrences], 0)
        bias = concat(c, [c.weight(n, (hidden,), w) for n in self.biases], 0) if self.biases else extra
        if self.biases and extra is not None:
            bias = c.add("add", bias, extra)
        turned = [c.transpose(v, [1, 0]) for v in (inputs, recurrence)]
        return Direction(forward, turned[0], turned[1], functions, states, bias, None, peepholes)


def _memory(c: NetworkCall, rows: Operand, k: int, activations: list[Message], w: Message) -> Direction:
    """Returns direction *k* of long short-term memory."""
    p, hidden = c.params.inner(15), c.integer(2)
    if p.flag(50) or len(activations) != 3:
        c.fail(
            "coupled gates, and other activations than three, are not supported", "convert the model to an mlprogram"
        )
    starts = [tuple([first + g for g in _GATES]) for first in (1, 20, 40)]
    gates = _Gates(starts[0], starts[1], starts[2] if p.flag(20) else ())
    ones = [c.add("full", shape=(hidden,), value=float(g == 1), dtype=rows.dtype) for g in _GATES]
    peepholes = tuple([c.weight(60 + g, (hidden,), w) for g in (0, 2, 1)]) if p.flag(40) else ()
    return gates.direction(
        c,
        w,
        [_function(c, m) for m in activations],
        _states(c, rows, k, 2),
        forward=not k,
        extra=concat(c, ones, 0) if p.flag(30) else None,
        peepholes=peepholes,
    )


def _cell(c: NetworkCall, rows: Operand) -> Cell:
    """Returns a step of long short-term memory, whose memory is clipped where so many steps may take it to the bound."""
    bound, steps = c.params.inner(15).number(60), static_sizes([rows.shape[0]])
    if bound <= 0 or (steps is not None and steps[0] <= bound):
        return lstm_cell()
    return lstm_cell(kept=lambda b, x: b.add("clip", x, b.scalar(-bound, x.dtype), b.scalar(bound, x.dtype)))


def _results(
    c: NetworkCall, rows: Operand, directions: list[Direction], cell: Cell, *, whole: bool
) -> tuple[Operand, ...]:
    """Returns the outputs of all steps, or of the last, and the last states of each direction."""
    y, states = recurrent_layer(c, rows, directions, cell)
    hidden = c.integer(2)
    time, count, batch, _ = y.shape
    last = [_one(c, s, k, hidden) for k in range(len(directions)) for s in states]
    made = c.reshape(c.transpose(y, [0, 2, 1, 3]), [time, batch, hidden * count, 1, 1])
    made = made if whole else concat(c, last[:: len(states)], 2)
    return (made, *last)[: c.outputs]


def _one(c: NetworkCall, states: Operand, k: int, hidden: int) -> Operand:
    """Returns the states [1, batch, hidden, 1, 1] of direction *k* of [directions, batch, hidden]."""
    part = c.add("slice", states, starts=(k,), ends=(k + 1,), axes=(0,), steps=(1,))
    return c.reshape(part, [1, states.shape[1], hidden, 1, 1])


def _states(c: NetworkCall, rows: Operand, k: int, count: int) -> tuple[Operand, ...]:
    """Returns the first states [batch, hidden] of direction *k*, zeros where they are not given."""
    shape: list[ExprLike] = [rows.shape[1], c.integer(2)]
    if len(c.inputs) <= count * (k + 1):
        return tuple([c.add("full", shape=tuple(shape), value=0, dtype=rows.dtype) for _ in range(count)])
    return tuple([c.reshape(c.input(1 + count * k + s), shape) for s in range(count)])
