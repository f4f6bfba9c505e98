"""Recurrent layers: Elman networks, GRU and LSTM, one step after another.

The products of the inputs of all steps are one matrix product; each step then adds the product of its state. Sequences shorter
than the longest keep their last state, and output zeros after it; steps that a mask leaves out keep the state, and output it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.composites.branches_and_loops import loop
from weft.graph.composites.sequences import concat, element, equal_split, few_steps, reverse, stack
from weft.support.dtypes import bool_, i64

Function: TypeAlias = Callable[[Builder, Operand], Operand]
"""An activation function, added by the builder that it is given."""
States: TypeAlias = tuple[Operand, ...]


@dataclass(frozen=True)
class Direction:
    """One direction of a layer: its weights, its activation functions, and the states before the first step [batch, hidden].

    `inputs` is [features, gates * hidden] and `recurrence` [hidden, gates * hidden]; the biases, if there are any, are
    [gates * hidden] each, and `peepholes` three vectors [hidden] (input, output and forget gate). With a `projection`
    [hidden, projected] of an LSTM's output, `recurrence` is [projected, gates * hidden]. The `products` of rows and these two
    matrices are plain ones unless given, as for the quantised ones of an LSTM.
    """

    forward: bool
    inputs: Operand
    recurrence: Operand
    functions: Sequence[Function]
    initial: States
    input_bias: Operand | None = None
    state_bias: Operand | None = None
    peepholes: Sequence[Operand] = ()
    projection: Operand | None = None
    products: tuple[Function, Function] | None = None


Cell: TypeAlias = Callable[[Builder, Direction, Operand, States], States]
"""One step: takes the input's product [batch, gates * hidden] and the states; returns the next states, the output first."""


def recurrent_layer(
    b: Builder,
    x: Operand,
    directions: Sequence[Direction],
    cell: Cell,
    lengths: Operand | None = None,
    mask: Operand | None = None,
    kept: Operand | None = None,
) -> tuple[Operand, list[Operand]]:
    """Returns the outputs of all steps, and for each state of *cell* its value after the last.

    *x* is [time, batch, features], *lengths* [batch], or *mask* [time, batch] the steps that count; a step takes the states times
    *kept* [time, batch], 0 where a sequence begins anew. The outputs are [time, directions, batch, hidden] and the states
    [directions, batch, hidden]. The steps are a loop unless they are few.
    """
    made = [_run(b, d, x, cell, lengths, mask, kept) for d in directions]
    finals = [stack(b, [states[k] for _, states in made], 0) for k in range(len(directions[0].initial))]
    return stack(b, [outputs for outputs, _ in made], 1), finals


def elman_cell(b: Builder, d: Direction, x: Operand, states: States) -> States:
    """The state of a network with one activation function (Elman, 1990)."""
    return (d.functions[0](b, b.add("add", x, _product(b, d, states[0]))),)


def gru_cell(*, reset_after_product: bool) -> Cell:
    """Returns gated recurrent units (Cho et al., 2014), gates in the order update, reset, candidate.

    The reset gate multiplies the state, or (*reset_after_product*) the state's product in the candidate.
    """

    def cell(b: Builder, d: Direction, x: Operand, states: States) -> States:
        (h,) = states
        xz, xr, xh = equal_split(b, x, 3)
        if reset_after_product:
            hz, hr, hh = equal_split(b, _product(b, d, h), 3)
            r = d.functions[0](b, b.add("add", xr, hr))
            inner = b.add("mul", r, hh)
        else:
            rz, rr, rh = equal_split(b, d.recurrence, 3)
            bz, br, bh = equal_split(b, d.state_bias, 3) if d.state_bias is not None else (None, None, None)
            hz, hr = _biased(b, b.add("matmul", h, rz), bz), _biased(b, b.add("matmul", h, rr), br)
            r = d.functions[0](b, b.add("add", xr, hr))
            inner = _biased(b, b.add("matmul", b.add("mul", r, h), rh), bh)
        z = d.functions[0](b, b.add("add", xz, hz))
        n = d.functions[1](b, b.add("add", xh, inner))
        kept = b.add("mul", z, h)
        return (b.add("add", b.add("mul", b.add("sub", b.scalar(1, z.dtype), z), n), kept),)

    return cell


def lstm_cell(*, coupled: bool = False, kept: Function | None = None) -> Cell:
    """Returns long short-term memory (Hochreiter and Schmidhuber, 1997), gates in the order input, output, forget, candidate.

    Peepholes are those of Gers and Schmidhuber (2000). The forget gate of a *coupled* one is one minus the input gate. A step
    goes on with what *kept* makes of the memory, where one clips or rounds it.
    """

    def cell(b: Builder, d: Direction, x: Operand, states: States) -> States:
        h, memory = states
        i, o, f, g = equal_split(b, b.add("add", x, _product(b, d, h)), 4)
        i = d.functions[0](b, _with_peephole(b, d, i, 0, memory))
        f = d.functions[0](b, _with_peephole(b, d, f, 2, memory))
        if coupled:
            f = b.add("sub", b.scalar(1, i.dtype), i)
        memory = b.add("add", b.add("mul", f, memory), b.add("mul", i, d.functions[1](b, g)))
        memory = memory if kept is None else kept(b, memory)
        o = d.functions[0](b, _with_peephole(b, d, o, 1, memory))
        h = b.add("mul", o, d.functions[2](b, memory))
        return h if d.projection is None else b.add("matmul", h, d.projection), memory

    return cell


def _function(op: str) -> Function:
    return lambda b, x: b.add(op, x)


class Kind(NamedTuple):
    """A kind of layer: activation functions, a step, where Weft's gates are among those of its weights, and its states."""

    functions: Sequence[Function]
    cell: Cell
    order: Sequence[int]
    states: Sequence[str] = ("output",)


def _places(own: str, theirs: str) -> list[int]:
    """Returns where the gates *own*, a letter each, are among *theirs*."""
    return [theirs.index(gate) for gate in own]


_SIGMOID, _TANH = _function("sigmoid"), _function("tanh")

KINDS: Final = {
    "rnn_relu": Kind([_function("relu")], elman_cell, _places("h", "h")),
    "rnn_tanh": Kind([_TANH], elman_cell, _places("h", "h")),
    "lstm": Kind([_SIGMOID, _TANH, _TANH], lstm_cell(), _places("iofc", "ifco"), ("output", "memory")),
    "gru": Kind([_SIGMOID, _TANH], gru_cell(reset_after_product=True), _places("urc", "ruc")),
}
"""The layers of PyTorch and MXNet, whose gates are input, forget, candidate and output, or reset, update and candidate."""


class Weights(NamedTuple):
    """The weights of one direction of a layer of one of the `KINDS`, its gates in their order.

    The matrices are [gates * hidden, features] and [gates * hidden, states], the biases [gates * hidden], and the projection of
    an LSTM's output [projected, hidden].
    """

    inputs: Operand
    recurrence: Operand
    input_bias: Operand | None = None
    state_bias: Operand | None = None
    projection: Operand | None = None


def recurrent_layers(
    b: Builder,
    x: Operand,
    kind: Kind,
    layers: Sequence[Sequence[Weights]],
    initial: Sequence[States],
    between: Function | None = None,
) -> tuple[Operand, list[Operand]]:
    """Returns the outputs of the last of *layers*, each of one direction or two, which are given those of the layer before.

    *x* is [time, batch, features], and *initial* the states [batch, hidden] of each direction of each layer; what is *between*
    two layers is applied to the outputs. Those of the last are [time, batch, directions * hidden]; the states after the last
    step are [layers * directions, batch, hidden].
    """
    ends, given = list[list[Operand]](), iter(initial)
    for k, weights in enumerate(layers):
        x = between(b, x) if k and between is not None else x
        directions = [_direction(b, kind, w, next(given), forward=n == 0) for n, w in enumerate(weights)]
        y, finals = recurrent_layer(b, x, directions, kind.cell)
        x = concat(b, [element(b, y, 1, n) for n in range(len(weights))], 2)
        ends.append(finals)
    return x, [concat(b, [e[k] for e in ends], 0) for k in range(len(kind.states))]


def _direction(b: Builder, kind: Kind, w: Weights, initial: States, *, forward: bool) -> Direction:
    """Returns a direction of a layer whose weights are those of its kind."""
    inputs, recurrence = (b.transpose(ordered_gates(b, m, kind.order), [1, 0]) for m in (w.inputs, w.recurrence))
    of_inputs, of_states = (
        None if v is None else ordered_gates(b, v, kind.order) for v in (w.input_bias, w.state_bias)
    )
    projection = None if w.projection is None else b.transpose(w.projection, [1, 0])
    return Direction(forward, inputs, recurrence, kind.functions, initial, of_inputs, of_states, projection=projection)


def ordered_gates(b: Builder, x: Operand, order: Sequence[int]) -> Operand:
    """Returns a matrix or vector [gates * hidden, ...] whose gates are those that it has at the places *order*."""
    if list(order) == list(range(len(order))):
        return x
    parts = b.add_many("split", x, axis=0, sizes=(x.shape[0] // len(order),) * len(order))
    return concat(b, [parts[k] for k in order], 0)


def _with_peephole(b: Builder, d: Direction, gate: Operand, k: int, memory: Operand) -> Operand:
    return b.add("add", gate, b.add("mul", d.peepholes[k], memory)) if d.peepholes else gate


def _biased(b: Builder, x: Operand, bias: Operand | None) -> Operand:
    return x if bias is None else b.add("add", x, bias)


def _product(b: Builder, d: Direction, h: Operand) -> Operand:
    product = b.add("matmul", h, d.recurrence) if d.products is None else d.products[1](b, h)
    return _biased(b, product, d.state_bias)


def _run(
    b: Builder,
    d: Direction,
    x: Operand,
    cell: Cell,
    lengths: Operand | None,
    mask: Operand | None,
    kept: Operand | None,
) -> tuple[Operand, States]:
    """Returns the outputs of all steps [time, batch, hidden], and the states after the last."""
    ordered = x if d.forward else reverse(b, x, lengths)
    given = b.add("matmul", ordered, d.inputs) if d.products is None else d.products[0](b, ordered)
    rows = [_biased(b, given, d.input_bias)]
    for one in (kept, mask):
        if one is not None:
            by_step = b.reshape(one, [*one.shape, 1])
            rows.append(by_step if d.forward else reverse(b, by_step, None))

    def step(r: Builder, t: Operand, now: Sequence[Operand], states: States) -> States:
        """Returns the output and the states after step *t*, which is given *now*."""
        if kept is not None:
            states = tuple([r.add("mul", now[1], s) for s in states])
        new = cell(r, d, now[0], states)
        if lengths is not None:
            live = r.add("less", r.cast(t, lengths.dtype), r.reshape(lengths, [*lengths.shape, 1]))
        elif mask is not None:
            live = now[-1]
        else:
            return new[0], *new
        held = [r.add("where", live, after, before) for after, before in zip(new, states, strict=True)]
        return held[0] if lengths is None else r.add("where", live, new[0], r.scalar(0, x.dtype)), *held

    steps = few_steps(x.shape[0])
    y, states = _written_out(b, steps, rows, d, step) if steps else _looped(b, rows, d, step)
    return (y if d.forward else reverse(b, y, lengths)), states


Step: TypeAlias = Callable[[Builder, Operand, Sequence[Operand], States], States]


def _written_out(b: Builder, steps: int, rows: Sequence[Operand], d: Direction, step: Step) -> tuple[Operand, States]:
    """Returns the outputs of a few steps, each of which is nodes of its own, and the last states."""
    states, outputs = d.initial, list[Operand]()
    for t in range(steps):
        out, *new = step(b, b.scalar(t, i64), [element(b, given, 0, t) for given in rows], states)
        states = tuple(new)
        outputs.append(b.reshape(out, [1, *out.shape]))
    return concat(b, outputs, 0), states


def _looped(b: Builder, rows: Sequence[Operand], d: Direction, step: Step) -> tuple[Operand, States]:
    """Returns the outputs of all steps of a loop, whose body is compiled once, and the last states."""

    def iteration(r: Builder, t: Operand, states: Sequence[Operand]) -> tuple[Operand, States, States]:
        now = [r.add("element_at", given, t, axis=0) for given in rows]
        out, *new = step(r, t, now, tuple(states))
        return r.scalar(True, bool_), tuple(new), (out,)

    last, outputs = loop(b, b.size(rows[0].shape[0]), None, d.initial, iteration)
    return outputs[0], tuple(last)
