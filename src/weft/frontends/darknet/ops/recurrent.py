"""Recurrent layers. A call is one step of N sequences, as in Darknet's `rnn generate`; states are kept for the next call.

The original's and the maintained fork's differ in their options and in the order of their weights.
"""

from __future__ import annotations

from weft.frontends.darknet.call import Call
from weft.frontends.darknet.ops.activations import ACTIVATIONS
from weft.frontends.darknet.ops.convolution import activated, convolved, padding_of, product
from weft.frontends.darknet.registry import layer
from weft.graph.builder import Operand


def _remembered(c: Call, inner: Operand, own: Operand, state: Operand) -> Operand:
    """Returns the next state: the sum of the products by the input and by the state, and of the state where it is a shortcut."""
    made = c.add("add", inner, own)
    return c.add("add", state, made) if c.flag("shortcut") else made


@layer("rnn")
def rnn(c: Call) -> Operand:
    """An Elman network whose state is a sum of two layers, and whose output is a third of it."""
    x, outputs = c.flat(), c.integer("output", 1, 1)
    hidden, logistic = (c.integer("hidden", 1, 1), c.integer("logistic", 0)) if c.is_forks else (outputs, 0)
    state = c.state(x, hidden)
    inner = activated(c, product(c, c.static(x)[0], hidden)(x), "logistic")
    own = product(c, hidden, hidden)(state)
    own = ACTIVATIONS["loggy" if logistic == 2 else "logistic"](c, own) if logistic else activated(c, own, "logistic")
    made = _remembered(c, inner, own, state)
    c.keep(made)
    return activated(c, product(c, hidden, outputs)(made), "logistic")


@layer("crnn")
def crnn(c: Call) -> Operand:
    """The same of images, by convolutions."""
    names, size = (
        (("hidden", "output"), c.integer("size", 3, 1)) if c.is_forks else (("hidden_filters", "output_filters"), 3)
    )
    hidden, outputs = (c.integer(name, 1, 1) for name in names)
    padding, x = padding_of(c, size) if c.is_forks else 1, c.image()
    if c.integer("stride", 1, 1) != 1:
        c.wrong("stride", "should be 1, so that states keep their size")
    _, height, width = c.static(x)
    if not c.is_forks and height != width:
        c.fail(f"the original Darknet swaps height and width here, which differ in {x!r}", "train it on square images")
    state = c.state(x, hidden, height, width)
    inner, own = (convolved(c, v, hidden, size, padding) for v in (x, state))
    made = _remembered(c, inner, own, state)
    c.keep(made)
    return convolved(c, made, outputs, size, padding)


@layer("gru")
def gru(c: Call) -> Operand:
    """Gated recurrent units (Cho et al., 2014), whose candidate is logistic unless `tanh` is set."""
    x, size = c.flat(), c.integer("output", 1, 1)
    h = c.state(x, size)
    widths = (c.static(x)[0], size) if c.is_forks else (size, c.static(x)[0])
    taken = [[product(c, width, size) for _ in range(3)] for width in widths]
    (xz, xr, xh), (hz, hr, hh) = taken if c.is_forks else taken[::-1]
    z, r = (c.add("sigmoid", c.add("add", a(x), b(h))) for a, b in ((xz, hz), (xr, hr)))
    candidate = c.add("add", xh(x), hh(c.add("mul", r, h)))
    candidate = c.add("tanh" if c.flag("tanh") else "sigmoid", candidate)
    made = c.add("add", candidate, c.add("mul", z, c.add("sub", h, candidate)))
    c.keep(made)
    return made


@layer("lstm")
def lstm(c: Call) -> Operand:
    """Long short-term memory (Hochreiter and Schmidhuber, 1997), whose gates are forget, input, candidate, output.

    The original has them in the order input, forget, output, candidate.
    """
    x, size = c.flat(), c.integer("output", 1, 1)
    h, memory = c.state(x, size), c.state(x, size)
    own = [product(c, size, size) for _ in range(4)]
    gates = [c.add("add", a(h), product(c, c.static(x)[0], size)(x)) for a in own]
    f, i, g, o = gates if c.is_forks else (gates[n] for n in (1, 0, 3, 2))
    f, i, o = (c.add("sigmoid", v) for v in (f, i, o))
    memory = c.add("add", c.add("mul", f, memory), c.add("mul", i, c.add("tanh", g)))
    made = c.add("mul", o, c.add("tanh", memory))
    c.keep(made, memory)
    return made
