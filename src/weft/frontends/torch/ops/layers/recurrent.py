"""Recurrent layers: RNN, GRU and LSTM, which are loops over their steps and not the thousands of nodes of all of them."""

from __future__ import annotations

from weft.frontends.torch.call import Call
from weft.frontends.torch.ops.distributions import dropped
from weft.frontends.torch.registry import translates
from weft.graph.builder import Operand, Results
from weft.graph.composites.recurrent import KINDS, Kind, Weights, recurrent_layers
from weft.graph.composites.sequences import element


@translates("rnn_relu.input")
def rnn_relu(c: Call) -> Results:
    """Layers of a rectified state each."""
    return _layers(c, KINDS["rnn_relu"], [c.tensor("hx", rank=3)])


@translates("rnn_tanh.input")
def rnn_tanh(c: Call) -> Results:
    """Layers of a state with a hyperbolic tangent each."""
    return _layers(c, KINDS["rnn_tanh"], [c.tensor("hx", rank=3)])


@translates("gru.input")
def gru(c: Call) -> Results:
    """Layers of gated recurrent units."""
    return _layers(c, KINDS["gru"], [c.tensor("hx", rank=3)])


@translates("lstm.input")
def lstm(c: Call) -> Results:
    """Layers of long short-term memory."""
    return _layers(c, KINDS["lstm"], c.tensors("hx"))


def _layers(c: Call, kind: Kind, states: list[Operand]) -> Results:
    """Imports layers one after another, in one direction or two; *states* are [layers * directions, batch, hidden]."""
    batch_first, directions = bool(c.value("batch_first")), 1 + bool(c.value("bidirectional"))
    count = c.integer("num_layers") * directions
    x = c.tensor("input", rank=3)
    x = c.transpose(x, [1, 0, 2]) if batch_first else x
    given = _weights(c, count, is_projected=len(states) == 2 and states[0].shape[2] is not states[1].shape[2])
    layers = [given[k : k + directions] for k in range(0, count, directions)]
    initial = [tuple([element(c, s, 0, k) for s in states]) for k in range(count)]
    p = float(c.value("dropout")) if c.value("train") else 0.0
    y, finals = recurrent_layers(c, x, kind, layers, initial, lambda _, outputs: dropped(c, outputs, p))
    return (c.transpose(y, [1, 0, 2]) if batch_first else y, *finals)


def _weights(c: Call, count: int, *, is_projected: bool) -> list[Weights]:
    """Returns the weights of *count* directions; each has two matrices, two biases if any, and the projection if there is one."""
    flat, has_biases = c.tensors("params"), bool(c.value("has_biases"))
    each = 2 + 2 * has_biases + is_projected
    if len(flat) != count * each:
        c.fail(f"it has {len(flat)} weights, and {count} directions of layers have {count * each}", "export it again")
    made = [flat[k : k + each] for k in range(0, len(flat), each)]
    biases = (2, 3) if has_biases else ()
    return [
        Weights(w[0], w[1], *[w[k] for k in biases])._replace(projection=w[-1] if is_projected else None) for w in made
    ]
