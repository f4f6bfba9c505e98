"""Windows of convolutions and pools: kernel, strides, dilations and pads, and pads that give a wanted output size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.graph.builder.builder import Builder
from weft.graph.builder.constants import CompileTimeConstant
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.builder.shape_arithmetic import total
from weft.ir import Const, Expr


@dataclass(frozen=True)
class Window:
    """A window over the spatial dimensions; `pads` has a number before each, then a number after each."""

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    pads: list[int]

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of a pool over this window."""
        return {"kernel": self.kernel, "strides": self.strides, "pads": self.pads, "dilations": self.dilations}


def same_pads(
    b: Builder,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    spatial: Sequence[Expr],
    *,
    lower: bool,
) -> list[int]:
    """Returns the pads that give ceil(size / stride) windows ("SAME" padding).

    The odd one goes after, or (*lower*) before. Raises `ModelError` for strides over a symbolic size.
    """
    totals = []
    for k, s, d, size in zip(kernel, strides, dilations, spatial, strict=True):
        reach = d * (k - 1) + 1
        if s == 1:
            totals.append(reach - 1)
        elif isinstance(size, Const):
            totals.append(max((-(-int(size.value) // s) - 1) * s + reach - int(size.value), 0))
        else:
            b.fail(
                f"its padding, chosen so that sizes are divided by the stride {s}, depends on a symbolic size",
                'give it a number: shapes={"x": (1, 3, 224, 224)}',
            )
    return halved(totals, lower=lower)


def halved(totals: Sequence[int], *, lower: bool) -> list[int]:
    """Returns pads before and after each dimension from their sums; the odd one goes after, or (*lower*) before."""
    small, large = [t // 2 for t in totals], [t - t // 2 for t in totals]
    return large + small if lower else small + large


def transposed_pads(
    window: Window, spatial: Sequence[int], extra: Sequence[int], wanted: Sequence[int], *, lower: bool
) -> tuple[Window, list[int]]:
    """Returns a transposed convolution's *window* with the pads that give the output sizes *wanted*, and the output padding.

    *extra* is added after the result in any case (output padding).
    """
    needed = [
        (size - 1) * s + e + d * (k - 1) + 1 - w
        for size, s, e, d, k, w in zip(
            spatial, window.strides, extra, window.dilations, window.kernel, wanted, strict=True
        )
    ]
    pads = halved([max(n, 0) for n in needed], lower=lower)
    added = [e + max(-n, 0) for e, n in zip(extra, needed, strict=True)]
    return Window(window.kernel, window.strides, window.dilations, pads), added


def filtered_columns(b: Builder, columns: Operand, weight: Operand, bias: Operand | None, groups: int) -> Operand:
    """Returns the convolution [N, F, *O] of windows in columns [N, C * kernel, *O] (im2col) by *weight* [F, C / groups, *K]."""
    sizes, places = columns.shape[2:], total(columns.shape[2:])
    terms, filters = columns.shape[1] // groups, weight.shape[0] // groups
    by_group = b.reshape(columns, (columns.shape[0], groups, terms, places))
    y = b.add("matmul", b.reshape(weight, (groups, filters, terms)), by_group)
    y = b.reshape(y, (columns.shape[0], weight.shape[0], *sizes))
    return y if bias is None else b.add("add", y, b.reshape(bias, (weight.shape[0], *[1] * len(sizes))))


def window_elements(b: Builder, x: Operand, w: Window, sizes: Sequence[int]) -> Operand:
    """Returns the elements of each window over images [N, C, *sizes]: [N, C, *kernel, *counts of windows] (im2col).

    Raises `ModelError` for windows that are larger than the padded images.
    """
    n = len(sizes)
    y: Operand = b.add("pad", x, pads=(0, 0, *w.pads[:n], 0, 0, *w.pads[n:]), mode="constant", value=0.0)
    for d, size in enumerate(sizes):  # dimension d as two, the elements of the window and the windows
        reach = w.dilations[d] * (w.kernel[d] - 1) + 1
        count = (size + w.pads[d] + w.pads[n + d] - reach) // w.strides[d] + 1
        if count < 1:
            b.fail(f"its windows are larger than {x!r}", "give it smaller windows, or larger images")
        rows = np.add.outer(np.arange(w.kernel[d]) * w.dilations[d], np.arange(count) * w.strides[d])
        y = b.add("gather", y, CompileTimeConstant(rows.astype(np.int64)), axis=2 + 2 * d)
    return b.transpose(y, [0, 1, *range(2, 2 * n + 2, 2), *range(3, 2 * n + 3, 2)])
