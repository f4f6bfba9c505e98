"""Recurrent layers over sequences [time, batch, ...], which `cont` [time, batch] divides: 0 at the first step of each.

A value that goes over from the last step of a run to the first of the next is a state; `expose_hidden` makes it bottoms and tops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from weft.frontends.caffe.call import Call
from weft.frontends.caffe.registry import Tops, layer
from weft.graph import Value
from weft.graph.builder import Builder, CompileTimeConstant, Operand, static_sizes
from weft.graph.composites.recurrent import Cell, Direction, Function, elman_cell, lstm_cell, recurrent_layer
from weft.graph.composites.sequences import element, equal_split
from weft.support.dtypes import f32

_BOTTOMS: Final = (
    "they are a sequence, its cont, maybe what is the same at all steps, and the states if it exposes them"
)


def _sigmoid(b: Builder, x: Operand) -> Operand:
    return b.add("sigmoid", x)


def _tanh(b: Builder, x: Operand) -> Operand:
    return b.add("tanh", x)


@layer("LSTM")
def lstm(c: Call) -> Tops:
    """Long short-term memory (Hochreiter and Schmidhuber, 1997)."""
    gated = _Layer(c, ("h_0", "c_0"), [0, 2, 1, 3])
    y, finals = gated.run(lstm_cell(), gated.direction((_sigmoid, _tanh, _tanh)))
    return (y, *finals)


@layer("RNN")
def rnn(c: Call) -> Tops:
    """A network of one hyperbolic tangent (Elman, 1990), and a layer of another from its state to its output."""
    plain = _Layer(c, ("h_0",), [0])
    hidden, finals = plain.run(elman_cell, plain.direction((_tanh,)))
    size, first = plain.size, plain.blobs
    weight, bias = c.blob(first, [size, size], "output weight"), c.blob(first + 1, [size], "output bias")
    return (_tanh(c, c.add("add", c.add("matmul", hidden, c.transpose(weight, [1, 0])), bias)), *finals)


@layer("LSTMUnit")
def lstm_unit(c: Call) -> Tops:
    """One step of long short-term memory from its gates [1, batch, 4 * size]: the memory, and the output."""
    if len(c.inputs) != 3:
        c.fail(f"it has {len(c.inputs)} bottoms, and takes three: the memory, the gates and cont")
    memory, gates, cont = c.inputs
    i, f, o, g = equal_split(c, gates, 4)
    kept = c.add("mul", c.add("mul", c.reshape(cont, [*cont.shape, 1]), _sigmoid(c, f)), memory)
    memory = c.add("add", kept, c.add("mul", _sigmoid(c, i), _tanh(c, g)))
    return memory, c.add("mul", _sigmoid(c, o), _tanh(c, memory))


class _Layer:
    """A recurrent layer of *states*, by their names, and as many gates as *order* has: the numbers of Caffe's in Weft's order.

    `size` is that of a state, and `blobs` the number of the blobs of its steps.
    """

    def __init__(self, c: Call, states: Sequence[str], order: Sequence[int]) -> None:
        p = c.parameters("recurrent_param")
        self.c, self.order, self.size = c, order, p.integer("num_output", 0, 1)
        first = len(c.inputs) - (len(states) if p.flag("expose_hidden", False) else 0)
        if first not in (2, 3) or c.inputs[0].rank < 2 or c.inputs[1].rank != 2:
            c.fail(f"it has {len(c.inputs)} bottoms, {', '.join(map(repr, c.inputs))}", _BOTTOMS)
        self.x, self.cont, *self.static = c.inputs[:first]
        self.blobs = 3 + len(self.static)
        self.given = c.inputs[first:]
        self.taken = list[Value]()
        if not self.given and not self._begins_anew():
            self.taken = [c.state(name, (self.x.shape[1], self.size)) for name in states]
        self.states = len(states)

    def direction(self, functions: Sequence[Function]) -> Direction:
        """Returns the weights of the gates with their *functions*, and the states before the first step."""
        inputs, recurrence = self._matrix(0, self.x, 2), self._matrix(self.blobs - 1, None, 0)
        return Direction(True, inputs, recurrence, functions, self._initial(), self._bias())

    def _initial(self) -> tuple[Operand, ...]:
        shape = (self.x.shape[1], self.size)
        if self.given or self.taken:
            return tuple([self.c.reshape(s, shape) for s in self.given or self.taken])
        return tuple([self.c.add("full", shape=shape, value=0, dtype=f32) for _ in range(self.states)])

    def _bias(self) -> Operand:
        """Returns the bias of the gates: a row for each sequence if there is a static input."""
        bias: Operand = self._ordered(1, (len(self.order) * self.size,), "bias")
        for x in self.static:
            flat = self.c.reshape(x, [x.shape[0], _count(self.c, x, 1)])
            bias = self.c.add("add", self.c.add("matmul", flat, self._matrix(2, x, 1)), bias)
        return bias

    def run(self, cell: Cell, direction: Direction) -> tuple[Operand, list[Operand]]:
        """Returns the first state after each step [time, batch, size], and all states after the last [1, batch, size]."""
        x = self.c.reshape(self.x, [*self.x.shape[:2], _count(self.c, self.x, 2)])
        outputs, finals = recurrent_layer(self.c, x, [direction], cell, kept=self.cont)
        for taken, left in zip(self.taken, finals, strict=False):
            self.c.leave(taken, element(self.c, left, 0, 0))
        return element(self.c, outputs, 1, 0), finals if self.given else []

    def _begins_anew(self) -> bool:
        """Tells whether it is known that no sequence goes on from the run before."""
        known = self.cont
        return isinstance(known, CompileTimeConstant) and not known.symbolic and not known.array[:1].any()

    def _matrix(self, k: int, x: Operand | None, first: int) -> Operand:
        """Returns blob *k*, [gates * size, features], transposed; its features are those of *x* from dimension *first* on."""
        features = self.size if x is None else _count(self.c, x, first)
        found = self._ordered(
            k, (len(self.order) * self.size, features), "weight of its state" if x is None else "weight"
        )
        return self.c.transpose(found, [1, 0])

    def _ordered(self, k: int, shape: Sequence[int], what: str) -> CompileTimeConstant:
        held = self.c.blob(k, shape, what)
        gates = np.split(held.array, len(self.order))
        return CompileTimeConstant(np.concatenate([gates[g] for g in self.order]), held.name)


def _count(c: Call, x: Operand, first: int) -> int:
    sizes = static_sizes(x.shape[first:])
    if sizes is None:
        c.fail(f"it needs sizes that are numbers: {x!r}")
    return int(np.prod(sizes, dtype=np.int64))
