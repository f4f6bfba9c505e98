"""Reductions of windows: pools, running sums, and others element by element of the window."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.frontends.jax.call import AGAIN, Call
from weft.frontends.jax.ops.convolution import pairs_of
from weft.frontends.jax.ops.elementwise import combine
from weft.frontends.jax.ops.movement import padded
from weft.frontends.jax.ops.reducers import reducer_of
from weft.frontends.jax.ops.reduction import is_neutral
from weft.frontends.jax.registry import translates
from weft.graph.builder import Operand, total
from weft.ir import as_expr, index
from weft.ops import same_size

MOST_TAPS: Final = 1024
"""Elements of a window that are combined one by one."""


@dataclass(frozen=True)
class Windows:
    """The windows over all dimensions of a tensor."""

    sizes: list[int]
    strides: list[int]
    dilations: list[int]
    pads: list[list[int]]

    @property
    def moving(self) -> list[int]:
        """The dimensions over which they extend, or move by steps."""
        still = ([1, 1], [0, 0])
        return [d for d, p in enumerate(self.pads) if ([self.sizes[d], self.strides[d]], p) != still]

    @property
    def are_inside(self) -> bool:
        """Tells whether no window lies in the padding alone."""
        reach = [(k - 1) * d + 1 for k, d in zip(self.sizes, self.dilations, strict=True)]
        return all(max(p) < r for p, r in zip(self.pads, reach, strict=True))

    def of(self, dims: Sequence[int]) -> dict[str, Any]:
        """Returns the attributes of a pool of Weft's over *dims*."""
        lists = {"kernel": self.sizes, "strides": self.strides, "dilations": self.dilations}
        pads = [self.pads[d][k] for k in (0, 1) for d in dims]
        return {**{name: [v[d] for d in dims] for name, v in lists.items()}, "pads": pads, "ceil_mode": False}


@translates("reduce_window")
def reduce_window(c: Call) -> tuple[Operand, ...]:
    """Combines the elements of each window."""
    count = len(c.operands) // 2
    given, initial = c.operands[:count], c.operands[count:]
    if count == 0 or len(initial) != count:
        c.fail("it should have a first value for each operand", AGAIN)
    given, windows = _given(c, given, initial)
    name = reducer_of(c) if count == 1 else None
    if name is not None and is_neutral(initial[0], name):
        made = _running(c, given[0], windows, name) or _pooled(c, given[0], windows, name)
        if made is not None:
            return (made,)
    return tuple(_by_taps(c, given, initial, windows))


@translates("custom_call @stablehlo.dynamic_reduce_window")
def dynamic_reduce_window(c: Call) -> tuple[Operand, ...]:
    """Running sums, or products, along a dimension of symbolic size: windows as large as it is."""
    if len(c.operands) != _DYNAMIC:
        c.fail("windows of symbolic sizes over several tensors are not supported", _FIXED)
    x = c.operand(0)
    sizes, *steps, pads = [c.late_sizes(_flat(c, c.operand(k)), "size", "its windows") for k in range(2, _DYNAMIC)]
    operator = _running_operator(c)
    moving, still = [d for d in range(x.rank) if sizes[d] != 1], {s for v in steps for s in v} == {1}
    if operator is None or len(moving) != 1 or not still:
        c.fail("windows of symbolic sizes, other than running sums and products, are not supported", _FIXED)
    (d,) = moving
    reach = [as_expr(sizes[d]), *[as_expr(p + 1) for p in pads[2 * d : 2 * d + 2]]]
    if not same_size(x.shape[d], reach[0]) or not any(same_size(r, reach[0]) for r in reach[1:]):
        c.fail(f"its windows of symbolic sizes are no running sums of {x!r}", _FIXED)
    return (c.add(operator, x, axis=d, exclusive=False, reverse=pads[2 * d] == 0),)


def _running_operator(c: Call) -> str | None:
    """Returns the operator of running sums or products whose function the call names; None for others."""
    names = c.value("called_computations")
    name = c.program.reducer(str(names[0]).lstrip("@")) if isinstance(names, list) and names else None
    return _RUNNING.get(name) if name is not None and is_neutral(c.operand(1), name) else None


_RUNNING: Final = {"add": "cumsum", "multiply": "cumprod"}
_DYNAMIC: Final = 7
_FIXED: Final = "export it with static shapes"


def _flat(c: Call, x: Operand) -> Operand:
    return c.reshape(x, [total(x.shape)])


def _given(c: Call, given: Sequence[Operand], initial: Sequence[Operand]) -> tuple[list[Operand], Windows]:
    """Returns the windows, and the operands with elements put between, or cut off, that windows can't have."""
    rank = given[0].rank
    sizes, strides, dilations, between = (c.ints(n, default=[1] * rank) for n in _ATTRIBUTES)
    pads = pairs_of(c, c.value("padding"), rank)
    numbers = [sizes, strides, dilations, between]
    if any(len(v) != rank or min(v, default=1) < 1 for v in numbers):
        c.fail(f"its windows are not those of {given[0]!r}", AGAIN)
    inner = [b - 1 for b in between]
    low, high = ([min(p[k], 0) for p in pads] for k in (0, 1))
    if any([*inner, *low, *high]):
        given = [padded(c, x, first, low, high, inner) for x, first in zip(given, initial, strict=True)]
    return list(given), Windows(sizes, strides, dilations, [[max(n, 0) for n in p] for p in pads])


_ATTRIBUTES: Final = ("window_dimensions", "window_strides", "window_dilations", "base_dilations")


def _running(c: Call, x: Operand, w: Windows, name: str) -> Operand | None:
    """Returns running sums or products: windows that reach from each element to an end of one dimension."""
    operator = _RUNNING.get(name)
    if operator is None or len(w.moving) != 1:
        return None
    (d,) = w.moving
    size = w.sizes[d]
    if (
        not same_size(x.shape[d], index(size))
        or w.strides[d] != 1
        or w.dilations[d] != 1
        or sorted(w.pads[d]) != [0, size - 1]
    ):
        return None
    return c.add(operator, x, axis=d, exclusive=False, reverse=w.pads[d][0] == 0 and size > 1)


def _pooled(c: Call, x: Operand, w: Windows, name: str) -> Operand | None:
    """Returns a pool of Weft's, over images whose windowed dimensions are last; None for other reductions."""
    operator = {"add": "sum_pool2d", "maximum": "max_pool2d", "minimum": "max_pool2d"}.get(name)
    moving = w.moving
    if operator is None or not x.dtype.is_float or not moving or not w.are_inside:
        return None
    order = [*[d for d in range(x.rank) if d not in moving], *moving]
    turned = c.transpose(x, order)
    lead = list(turned.shape[: x.rank - len(moving)])
    shape = lead if len(lead) == 2 else [1, total(lead)]
    images = c.reshape(turned, [*shape, *turned.shape[len(lead) :]])
    images = c.add("neg", images) if name == "minimum" else images
    made = c.add(operator, images, **w.of(moving))
    made = c.add("neg", made) if name == "minimum" else made
    return c.transpose(c.reshape(made, [*lead, *made.shape[2:]]), [order.index(d) for d in range(x.rank)])


def _by_taps(c: Call, given: Sequence[Operand], initial: Sequence[Operand], w: Windows) -> list[Operand]:
    """Returns windows reduced by the operation's region, from slices of all elements at the same place of their window."""
    taps = math.prod(w.sizes)
    if taps > MOST_TAPS:
        c.fail(f"windows of {taps} elements by a function of its own are not supported; {MOST_TAPS} is the most", AGAIN)
    low, high = ([p[k] for p in w.pads] for k in (0, 1))
    whole = [padded(c, x, f, low, high, [0] * x.rank) for x, f in zip(given, initial, strict=True)]
    pieces = [[tap(c, x, w, k) for x in whole] for k in range(taps)]
    while len(pieces) > 1:
        pairs = [pieces[k : k + 2] for k in range(0, len(pieces), 2)]
        pieces = [_combined(c, p[0], p[1]) if len(p) == 2 else p[0] for p in pairs]
    return _combined(c, pieces[0], initial)


def _combined(c: Call, left: Sequence[Operand], right: Sequence[Operand]) -> list[Operand]:
    name = reducer_of(c) if len(left) == 1 else None
    return [combine(c, name, left[0], right[0])] if name is not None else c.region(0, [*left, *right])


def tap(c: Call, x: Operand, w: Windows, k: int) -> Operand:
    """Returns element *k*, counted row by row, of each window."""
    starts, ends = list[int](), list[int]()
    sizes = c.static(x)
    for d in reversed(range(x.rank)):
        k, at = divmod(k, w.sizes[d])
        reach = (w.sizes[d] - 1) * w.dilations[d] + 1
        count = (sizes[d] - reach) // w.strides[d] + 1
        if count < 1:
            c.fail(f"a window of {reach} is larger than dimension {d} of {x!r}", AGAIN)
        starts.insert(0, at * w.dilations[d])
        ends.insert(0, at * w.dilations[d] + (count - 1) * w.strides[d] + 1)
    return c.add("slice", x, starts=tuple(starts), ends=tuple(ends), axes=tuple(range(x.rank)), steps=tuple(w.strides))
