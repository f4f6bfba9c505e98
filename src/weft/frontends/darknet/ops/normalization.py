"""Local response normalisation, as Darknet computes it."""

from __future__ import annotations

from weft.frontends.darknet.call import Call
from weft.frontends.darknet.registry import layer
from weft.graph.builder import Operand
from weft.graph.composites.slicing import slice_axes
from weft.graph.composites.windows import Window


@layer("lrn", "normalization")
def normalization(c: Call) -> Operand:
    """Returns `x * (kappa + alpha * sums) ** -beta`; the sums are of squares of so many neighbouring channels as `size` says.

    They are running sums, of which the first lacks its last square (normalization_layer.c): all are too small by that.
    """
    size = c.integer("size", 5, 1)
    alpha, beta, kappa = c.number("alpha", 0.0001), c.number("beta", 0.75), c.number("kappa", 1.0)
    x = c.image()
    channels, after = c.static(x)[0], size // 2
    if after >= channels:
        c.wrong("size", f"should be below {2 * channels}, for {channels} channels")
    squares = c.add("mul", x, x)
    before = (size - 1) // 2
    rows = c.reshape(squares, [x.shape[0], 1, channels, x.shape[2] * x.shape[3]])
    window = Window([size, 1], [1, 1], [1, 1], [before, 0, after, 0])
    means = c.reshape(c.add("avg_pool2d", rows, **window.attributes, count_include_pad=True), x.shape)
    sums = c.add("mul", means, c.scalar(float(size), x.dtype))
    lacking = slice_axes(c, squares, [1], [after], [after + 1], [1])
    scaled = c.add("mul", c.add("sub", sums, lacking), c.scalar(alpha, x.dtype))
    norms = c.add("add", scaled, c.scalar(kappa, x.dtype))
    return c.add("mul", x, c.add("power", norms, c.scalar(-beta, x.dtype)))
