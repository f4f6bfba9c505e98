"""Recurrent layers. A call is one step of N sequences, as in Darknet's `rnn generate`; states are kept for the next call."""

from __future__ import annotations

from weft.frontends.darknet.call import Call
from weft.frontends.darknet.ops.activations import ACTIVATIONS
from weft.frontends.darknet.ops.convolution import activated, convolved, product
from weft.frontends.darknet.registry import layer
from weft.graph.builder import Operand


def _remembered(c: Call, inner: Operand, own: Operand, state: Operand) -> Operand:
    """Returns the next state: the sum of what the input and the state give, and of the state where it is a shortcut."""
    made = c.add("add", inner, own)
    return c.add("add", state, made) if c.flag("shortcut") else made


@layer("rnn")
def rnn(c: Call) -> Operand:
    """An Elman network whose state is a sum of two layers, and whose output is a third of it."""
    x, hidden, outputs = c.flat(), c.integer("hidden", 1, 1), c.integer("output", 1, 1)
    state, logistic = c.state(x, hidden), c.integer("logistic", 0)
    inner = activated(c, product(c, x, hidden), "logistic")
    own = product(c, state, hidden)
    own = ACTIVATIONS["loggy" if logistic == 2 else "logistic"](c, own) if logistic else activated(c, own, "logistic")
    made = _remembered(c, inner, own, state)
    c.keep(made)
    return activated(c, product(c, made, outputs), "logistic")


@layer("crnn")
def crnn(c: Call) -> Operand:
    """The same of images, by convolutions."""
    x, hidden, outputs, size = c.image(), c.integer("hidden", 1, 1), c.integer("output", 1, 1), c.integer("size", 3, 1)
    if c.integer("stride", 1, 1) != 1:
        c.wrong("stride", "should be 1, so that states keep their size")
    _, height, width = c.static(x)
    state = c.state(x, hidden, height, width)
    inner, own = (convolved(c, v, hidden, size) for v in (x, state))
    made = _remembered(c, inner, own, state)
    c.keep(made)
    return convolved(c, made, outputs, size)


@layer("gru")
def gru(c: Call) -> Operand:
    """Gated recurrent units (Cho et al., 2014), whose candidate is logistic unless `tanh` is set."""
    x, size = c.flat(), c.integer("output", 1, 1)
    h = c.state(x, size)
    xz, xr, xh = (product(c, x, size) for _ in range(3))
    hz, hr = (product(c, h, size) for _ in range(2))
    z, r = (c.add("sigmoid", c.add("add", a, b)) for a, b in ((xz, hz), (xr, hr)))
    candidate = c.add("add", xh, product(c, c.add("mul", r, h), size))
    candidate = c.add("tanh" if c.flag("tanh") else "sigmoid", candidate)
    made = c.add("add", candidate, c.add("mul", z, c.add("sub", h, candidate)))
    c.keep(made)
    return made


@layer("lstm")
def lstm(c: Call) -> Operand:
    """Long short-term memory (Hochreiter and Schmidhuber, 1997), whose gates are forget, input, candidate, output."""
    x, size = c.flat(), c.integer("output", 1, 1)
    h, memory = c.state(x, size), c.state(x, size)
    own = [product(c, h, size) for _ in range(4)]
    f, i, g, o = (c.add("add", a, product(c, x, size)) for a in own)
    f, i, o = (c.add("sigmoid", v) for v in (f, i, o))
    memory = c.add("add", c.add("mul", f, memory), c.add("mul", i, c.add("tanh", g)))
    made = c.add("mul", o, c.add("tanh", memory))
    c.keep(made, memory)
    return made
