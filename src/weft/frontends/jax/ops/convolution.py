"""Convolutions with any order of dimensions, over inputs and weights that may be dilated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from weft.frontends.jax.call import AGAIN, Call
from weft.frontends.jax.ops.movement import padded, turned
from weft.frontends.jax.registry import translates
from weft.graph.builder import Operand


@dataclass(frozen=True)
class Window:
    """How a kernel moves over the spatial dimensions."""

    strides: list[int]
    low: list[int]
    high: list[int]
    input_dilations: list[int]
    dilations: list[int]
    reversed: list[bool]


@translates("convolution")
def convolution(c: Call) -> Operand:
    """A convolution; one over an input with zeros between its elements is a transposed convolution."""
    x_order, w_order, y_order = _orders(c)
    x = c.transpose(c.operand(0), _placed(c, x_order, "b", "f"))
    w = c.transpose(c.operand(1), _placed(c, w_order, "o", "i"))
    window = _window(c, x.rank - 2)
    dtype = c.result_dtype()
    x, w = c.cast(x, dtype), c.cast(w, dtype)
    if any(window.reversed):
        w = turned(c, w, [2 + d for d, r in enumerate(window.reversed) if r])
    groups = c.integer("feature_group_count")
    if (parts := c.integer("batch_group_count")) != 1:
        x, groups = _batches_as_channels(c, x, w, parts, groups), parts
    y = _transposed(c, x, w, window, groups)
    if y is None:
        y = _direct(c, x, w, window, groups)
    order = _placed(c, y_order, "b", "f")
    return c.transpose(y, [order.index(d) for d in range(y.rank)])


def _batches_as_channels(c: Call, x: Operand, w: Operand, parts: int, groups: int) -> Operand:
    """Returns *x* with its parts of the batch side by side in its channels, of which each makes a part of the result's channels.

    Gradients of grouped convolutions are such ones.
    """
    batch, outputs = c.static(x)[0], c.static(w)[0]
    if parts < 1 or groups != 1 or batch % parts or outputs % parts:
        c.fail(f"{parts} parts of a batch and {groups} groups are not those of {x!r} and {w!r}", AGAIN)
    apart = c.transpose(c.reshape(x, [parts, batch // parts, *x.shape[1:]]), [1, 0, *range(2, x.rank + 1)])
    return c.reshape(apart, [batch // parts, x.shape[1] * parts, *x.shape[2:]])


def _direct(c: Call, x: Operand, w: Operand, window: Window, groups: int) -> Operand:
    pads = [*window.low, *window.high]
    inner = [d - 1 for d in window.input_dilations]
    if min(pads, default=0) < 0 or any(inner):
        x = padded(c, x, c.scalar(0, x.dtype), *([0, 0, *v] for v in (window.low, window.high, inner)))
        pads = [0] * len(pads)
    return c.add(
        "conv2d",
        x,
        w,
        None,
        strides=tuple(window.strides),
        pads=tuple(pads),
        dilations=tuple(window.dilations),
        group=groups,
    )


def _transposed(c: Call, x: Operand, w: Operand, window: Window, groups: int) -> Operand | None:
    """Returns the convolution of a dilated input as a transposed one; None for those that are none."""
    reach = [d * (k - 1) for d, k in zip(window.dilations, c.static(w)[2:], strict=True)]
    before, after = ([r - p for r, p in zip(reach, pads, strict=True)] for pads in (window.low, window.high))
    strides = window.input_dilations
    extra = [max(-n, 0) for n in after]
    is_dilated = any(s != 1 for s in strides) and all(s == 1 for s in window.strides)
    fits = min(before, default=0) >= 0 and all(n < s for n, s in zip(extra, strides, strict=True))
    if not (is_dilated and fits and groups == 1):
        return None
    weight = c.transpose(turned(c, w, range(2, w.rank)), [1, 0, *range(2, w.rank)])
    return c.add(
        "conv_transpose2d",
        x,
        weight,
        None,
        strides=tuple(strides),
        pads=(*before, *[max(n, 0) for n in after]),
        dilations=tuple(window.dilations),
        group=1,
        output_padding=tuple(extra),
    )


def _orders(c: Call) -> list[list[Any]]:
    """Returns the names of the dimensions of the input, the weight and the result."""
    found = c.value("dim_numbers", "dimension_numbers")
    if not isinstance(found, list) or len(found) != 3 or not all(isinstance(v, list) for v in found):
        c.fail(f"its dimension numbers are {found!r}", AGAIN)
    return found


def _placed(c: Call, order: Sequence[Any], first: str, second: str) -> list[int]:
    """Returns where the dimensions *first*, *second* and the spatial ones stand in *order*."""
    names = [first, second, *range(len(order) - 2)]
    if sorted(map(str, names)) != sorted(map(str, order)):
        c.fail(f"its dimension numbers {list(order)} are not {', '.join(map(str, names))}", AGAIN)
    return [list(order).index(n) for n in names]


def _window(c: Call, n: int) -> Window:
    """Returns the window, of the own form or the generic one."""
    given = c.value("window")
    found = given if isinstance(given, dict) else c.operation.attributes
    names = {"strides": ("stride", "window_strides"), "input_dilations": ("lhs_dilate", "lhs_dilation")}
    names |= {"dilations": ("rhs_dilate", "rhs_dilation")}
    made = {key: _numbers(c, found, pair, n) for key, pair in names.items()}
    if min([*made["strides"], *made["input_dilations"], *made["dilations"]], default=1) < 1:
        c.fail("its strides and dilations should be 1 or more", AGAIN)
    pads = pairs_of(c, found.get("pad", found.get("padding")), n)
    turns = found.get("reverse", found.get("window_reversal"))
    turns = [False] * n if turns is None else getattr(turns, "elements", turns)
    turns = turns if isinstance(turns, list) else [turns] * n
    return Window(**made, low=[p[0] for p in pads], high=[p[1] for p in pads], reversed=[bool(t) for t in turns])


def _numbers(c: Call, found: dict[str, Any], names: Sequence[str], n: int) -> list[int]:
    given = next((found[k] for k in names if k in found), [1] * n)
    made = c.integers_of(given, names[0])
    if len(made) != n:
        c.fail(f"its attribute {names[0]} has {len(made)} numbers for {n} dimensions", AGAIN)
    return made


def pairs_of(c: Call, given: Any, n: int) -> list[list[int]]:
    """Returns pads before and after each of *n* dimensions; one number stands for all, and None for none."""
    found = getattr(given, "elements", given)
    if found is None or isinstance(found, int):
        return [[found or 0] * 2 for _ in range(n)]
    made = [c.integers_of(p, "padding") for p in found] if isinstance(found, list) else []
    if len(made) != n or any(len(p) != 2 for p in made):
        c.fail(f"its padding {found!r} should be two numbers for each of {n} dimensions", AGAIN)
    return made
