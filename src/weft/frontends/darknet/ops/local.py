"""A convolution whose kernel is another one at each place."""

from __future__ import annotations

from weft.frontends.darknet.call import Call
from weft.frontends.darknet.ops.convolution import activated
from weft.frontends.darknet.registry import layer
from weft.graph.builder import Operand
from weft.graph.composites.slicing import slice_axes


@layer("local")
def local(c: Call) -> Operand:
    """Convolution with weights [places, filters, channels * size * size] and biases of all outputs; `pad` is in pixels."""
    x, filters, size = c.image(), c.integer("filters", 1, 1), c.integer("size", 1, 1)
    stride, pad = c.integer("stride", 1, 1), c.integer("pad", 0, 0)
    channels, height, width = c.static(x)
    if pad and 2 * pad != size - 1:
        c.wrong("pad", "should be 0, or half of the kernel", "train the network so")
    rows, columns = ((n + 2 * pad - size) // stride + 1 for n in (height, width))
    if min(rows, columns) < 1:
        c.wrong("size", f"is larger than the images of {x!r}")
    places = rows * columns
    bias = c.take([filters, places], "biases")
    weight = c.take([places, filters, channels * size * size], "weights")
    if pad:
        x = c.add("pad", x, pads=(0, 0, pad, pad, 0, 0, pad, pad))
    windows = c.reshape(_windows(c, x, size, stride, rows, columns), [x.shape[0], channels * size * size, places])
    y = c.transpose(c.add("matmul", weight, c.transpose(windows, [2, 1, 0])), [2, 1, 0])
    return activated(c, c.reshape(c.add("add", y, bias), [x.shape[0], filters, rows, columns]), "logistic")


def _windows(c: Call, x: Operand, size: int, stride: int, rows: int, columns: int) -> Operand:
    """Returns [N, C, size * size, rows, columns]: the elements of all windows."""
    parts = []
    for k in range(size * size):
        top, left = divmod(k, size)
        ends = [top + stride * (rows - 1) + 1, left + stride * (columns - 1) + 1]
        part = slice_axes(c, x, [2, 3], [top, left], ends, [stride, stride])
        parts.append(c.reshape(part, [x.shape[0], x.shape[1], 1, rows, columns]))
    return c.add("concat", *parts, axis=2) if len(parts) > 1 else parts[0]
