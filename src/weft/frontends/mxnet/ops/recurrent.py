"""The fused recurrent layers, whose weights are one vector, and operators on sequences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from weft.frontends.mxnet.call import Call
from weft.frontends.mxnet.registry import translates
from weft.graph.builder import Operand, static_sizes
from weft.graph.composites.recurrent import KINDS, Weights, recurrent_layers
from weft.graph.composites.sequences import element
from weft.graph.composites.sequences import reverse as reverse_of
from weft.graph.composites.slicing import FAR, slice_axes
from weft.support.dtypes import i64

_HINT: Final = "build the network without it"


@translates("RNN")
def rnn(c: Call) -> Operand | tuple[Operand, ...]:
    """Layers of a recurrent network one after another, in one direction or both: [time, batch, features]."""
    kind = KINDS[_mode(c)]
    x, size = c.input(0, rank=3), _size(c)
    sizes = [_projected(c) or size, size][: len(kind.states)]
    layers = _weights(c, x, 1 + c.flag("bidirectional"), len(kind.order))
    count = sum(map(len, layers))
    initial = [tuple([_first(c, 2 + i, k, x, s) for i, s in enumerate(sizes)]) for k in range(count)]
    y, states = recurrent_layers(c, x, kind, layers, initial)
    return (y, *states) if c.flag("state_outputs") else y


def _mode(c: Call) -> str:
    """Returns the kind of layer; raises `ModelError` for features that are not supported."""
    mode = c.text("mode")
    if mode not in KINDS:
        c.fail(f"its mode {mode!r} is not supported", f"use one of {', '.join(KINDS)}")
    if c.value("lstm_state_clip_min") is not None or (_projected(c) and mode != "lstm"):
        c.fail("clipped states, and projections of other layers than LSTMs, are not supported", _HINT)
    if c.flag("use_sequence_length"):
        c.fail("sequences of several lengths, which MXNet tells apart on a GPU only, are not supported", _HINT)
    return mode


def _size(c: Call) -> int:
    return c.integer("state_size")


def _projected(c: Call) -> int:
    """Returns the size that an LSTM's output is projected to; 0 where it is not."""
    return 0 if c.value("projection_size") is None else c.integer("projection_size")


def _weights(c: Call, x: Operand, directions: int, gates: int) -> list[list[Weights]]:
    """Returns the weights of each layer's directions; the vector has the matrices of all, then the biases."""
    shapes, count = _shapes(c, x, directions, gates), c.integer("num_layers") * directions
    pieces = _pieces(c, [s for each in shapes for s in each], [gates * _size(c)] * (2 * count))
    matrices = [[next(pieces) for _ in each] for each in shapes]
    made = [Weights(m[0], m[1], next(pieces), next(pieces), *m[2:]) for m in matrices]
    return [made[k : k + directions] for k in range(0, count, directions)]


def _shapes(c: Call, x: Operand, directions: int, gates: int) -> list[list[tuple[int, int]]]:
    """Returns the shapes of the two or three matrices of each direction of each layer, one direction after another."""
    features, size, projected, layers = static_sizes(x.shape[2:]), _size(c), _projected(c), c.integer("num_layers")
    if features is None or not 1 <= size <= 1 << 20 or not 1 <= layers <= 1 << 10 or not 0 <= projected <= size:
        c.fail(f"it has {layers} layers of {size} states, over {x!r}", "save the network again")
    states = projected or size
    last = [(projected, size)] if projected else []
    widths = [features[0], *[directions * states] * (layers - 1)]
    return [[(gates * size, w), (gates * size, states), *last] for w in widths for _ in range(directions)]


def _pieces(c: Call, matrices: list[tuple[int, int]], vectors: list[int]) -> Iterator[Operand]:
    """Yields the pieces of the vector of weights; raises `ModelError` where it has not as many."""
    flat = c.input(1, rank=1)
    sizes = [m * n for m, n in matrices] + vectors
    if static_sizes(flat.shape) != [sum(sizes)]:
        c.fail(f"its weights are {flat!r}, and should be {sum(sizes)} numbers", "save the network again")
    parts = c.add_many("split", flat, axis=0, sizes=tuple(sizes))
    shapes = [*matrices, *[(n,) for n in vectors]]
    yield from (c.reshape(p, shape) for p, shape in zip(parts, shapes, strict=True))


def _first(c: Call, i: int, k: int, x: Operand, size: int) -> Operand:
    """Returns a state before the first step; where the network leaves the batch's size open, one for all of it."""
    given = element(c, c.input(i, rank=3), 0, k)
    return c.add("expand", given, shape=(x.shape[1], size)) if static_sizes(given.shape[:1]) == [1] else given


def _lengths(c: Call) -> Operand | None:
    return c.cast(c.input(1), i64) if c.flag("use_sequence_length") else None


@translates("SequenceReverse")
def sequence_reverse(c: Call) -> Operand:
    """Sequences [time, batch, ...] backwards, each up to its length."""
    return _turned(c, reverse_of(c, _turned(c, c.input(0)), _lengths(c)))


@translates("SequenceMask")
def sequence_mask(c: Call) -> Operand:
    """Sequences with a number behind their ends, where lengths are given."""
    x, axis, lengths = c.input(0), c.integer("axis", 0), _lengths(c)
    if lengths is None:
        return x
    if axis not in (0, 1):
        c.fail(f"its axis {axis} is not supported", "use 0 or 1")
    steps = c.cast(c.add("range", start=0, size=x.shape[axis], step=1), i64)
    is_inside = c.add("less", c.reshape(steps, [1, x.shape[axis]]), c.reshape(lengths, [x.shape[1 - axis], 1]))
    turned = is_inside if axis == 1 else c.transpose(is_inside, [1, 0])
    mask = c.reshape(turned, [*x.shape[:2], *[1] * (x.rank - 2)])
    return c.add("where", mask, x, c.scalar(c.number("value", 0.0), x.dtype))


@translates("SequenceLast")
def sequence_last(c: Call) -> Operand:
    """The last element of each sequence [time, batch, ...]."""
    x, lengths = _turned(c, c.input(0)), _lengths(c)
    if lengths is None:
        return c.reshape(slice_axes(c, x, [0], [-1], [FAR], [1]), x.shape[1:])
    last = c.add("sub", lengths, c.scalar(1, i64))
    places = c.reshape(last, [1, x.shape[1], *[1] * (x.rank - 2)])
    found = c.add("gather_elements", x, c.add("expand", places, shape=(1, *x.shape[1:])), axis=0)
    return c.reshape(found, x.shape[1:])


def _turned(c: Call, x: Operand) -> Operand:
    """Returns sequences whose `axis` is the first dimension or the second with the time first, or such as they are given."""
    axis = c.integer("axis", 0)
    if axis not in (0, 1):
        c.fail(f"its axis {axis} is not supported", "use 0 or 1")
    return c.transpose(x, [1, 0, *range(2, x.rank)]) if axis else x
