"""The attributes that convolutions and pools share: kernel, strides, dilations, pads, and padding chosen automatically."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.frontends.onnx.call import Call
from weft.ir.expr import Const, Expr


@dataclass(frozen=True)
class Window:
    """A window over the spatial dimensions; `pads` has a number before each, then a number after each."""

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    pads: list[int]


def window_of(c: Call, kernel: Sequence[int], spatial: Sequence[Expr], ceil_mode: bool = False) -> Window:
    """Reads the window of *kernel* over dimensions of the sizes *spatial*."""
    n = len(kernel)
    strides = c.ints("strides") or [1] * n
    dilations = c.ints("dilations") or [1] * n
    pads = c.ints("pads") or [0] * (2 * n)
    if len(pads) != 2 * n or len(strides) != n or len(dilations) != n or len(spatial) != n:
        c.fail(
            f"a kernel of {n} dimensions with {len(spatial)} spatial dimensions, strides {strides}, dilations {dilations} "
            f"and pads {pads} does not fit together"
        )
    auto = c.text("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        pads = _same_pads(c, kernel, strides, dilations, spatial, auto == "SAME_LOWER")
    elif auto == "VALID":
        pads = [0] * (2 * n)
    return Window(list(kernel), strides, dilations, pads)


def _same_pads(
    c: Call,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    spatial: Sequence[Expr],
    lower: bool,
) -> list[int]:
    """Returns the pads that make as many windows as there are strides in the input; the odd one goes after, or before."""
    before, after = [], []
    for k, s, d, size in zip(kernel, strides, dilations, spatial, strict=True):
        reach = d * (k - 1) + 1
        if s == 1:
            total = reach - 1
        elif isinstance(size, Const):
            total = max((-(-int(size.value) // s) - 1) * s + reach - int(size.value), 0)
        else:
            c.fail(
                f"its padding (auto_pad, stride {s}) depends on a symbolic size",
                'give it a number: shapes={"x": (1, 3, 224, 224)}',
            )
        small, large = total // 2, total - total // 2
        before.append(large if lower else small)
        after.append(small if lower else large)
    return before + after
