"""Windows as columns, elements that are copied to others' places or chosen by a mask, and layers that change nothing."""

from __future__ import annotations

from weft.frontends.mxnet.call import Call
from weft.frontends.mxnet.registry import translates
from weft.graph.builder import Operand, static_sizes, total
from weft.graph.composites.selection import compress
from weft.graph.composites.sequences import stack
from weft.graph.composites.windows import Window, window_elements
from weft.support.dtypes import bool_, i64


def _window(c: Call, n: int) -> Window:
    """Returns the window of an operator over *n* dimensions."""
    kernel = c.ints("kernel")
    strides, dilations, pads = (c.ints(name, ()) or [d] * n for name, d in (("stride", 1), ("dilate", 1), ("pad", 0)))
    if {len(v) for v in (kernel, strides, dilations, pads)} != {n} or min(*kernel, *strides, *dilations) < 1:
        c.wrong("kernel", f"a window over {n} dimensions, with as many strides and pads")
    return Window(kernel, strides, dilations, pads * 2)


@translates("im2col")
def im2col(c: Call) -> Operand:
    """The elements of each window as a column: [N, C * kernel, windows]."""
    x = c.input()
    n, sizes = x.rank - 2, static_sizes(x.shape[2:])
    if sizes is None or n < 1:
        c.fail(f"it needs images of sizes that are numbers: {x!r}", "give their shape: shapes={...}")
    y = window_elements(c, x, _window(c, n), sizes)
    return c.reshape(y, [x.shape[0], total(y.shape[1 : n + 2]), total(y.shape[n + 2 :])])


@translates("col2im")
def col2im(c: Call) -> Operand:
    """Images that windows, each a column, add up to."""
    image = c.ints("output_size")
    w = _window(c, len(image))
    return c.add(
        "col2im",
        c.input(0, rank=3),
        image=tuple(image),
        block=tuple(w.kernel),
        strides=tuple(w.strides),
        pads=tuple(w.pads),
        dilations=tuple(w.dilations),
    )


@translates("_contrib_index_copy")
def index_copy(c: Call) -> Operand:
    """A tensor whose rows at indices are others."""
    places = c.cast(c.input(1, rank=1), i64)
    return c.add("scatter_nd", c.input(0), c.reshape(places, [*places.shape, 1]), c.input(2), reduction="none")


@translates("_contrib_index_array")
def index_array(c: Call) -> Operand:
    """The coordinates of each element, all of them or those along `axes`, as a new last dimension."""
    x = c.input()
    axes = [c.axis_of(a, x.rank) for a in c.ints("axes", ())] if c.value("axes") else [*range(x.rank)]
    made: list[Operand] = []
    for d in axes:
        steps = c.cast(c.add("range", start=0, size=x.shape[d], step=1), i64)
        along = c.reshape(steps, [x.shape[d], *[1] * (x.rank - 1 - d)])
        made.append(c.add("expand", along, shape=x.shape))
    return stack(c, made, x.rank)


@translates("_contrib_boolean_mask", "_npi_boolean_mask")
def boolean_mask(c: Call) -> Operand:
    """The slices along an axis where a mask is not zero."""
    x = c.input(0)
    return compress(c, x, c.cast(c.input(1, rank=1), bool_), c.axis_of(c.integer("axis", 0), x.rank))


@translates("cast_storage", "SVMOutput")
def unchanged(c: Call) -> Operand:
    """A tensor as it is: the operators differ from a copy in training, or in memory."""
    return c.input()
