"""States, which calls of the model read and write, and the slices of tensors that they write over."""

from __future__ import annotations

import numpy as np

from weft.frontends.coreml.call import AGAIN, Call, State
from weft.frontends.coreml.registry import translates
from weft.graph.builder import CompileTimeConstant, Operand, static_sizes
from weft.graph.composites.window_updates import write_window
from weft.support.dtypes import i64


def _state(c: Call) -> State:
    found = c.given.get("input")
    if not isinstance(found, State):
        c.fail("its input 'input' is no state", AGAIN)
    return found


@translates("read_state")
def read_state(c: Call) -> Operand:
    """The present value of a state."""
    return _state(c).value


@translates("write_state")
def write_state(c: Call) -> tuple[Operand, ...]:
    """Gives a state another value; it has no result."""
    state, made = _state(c), c.operand("data")
    if state.evaluator is not c.evaluator:
        c.fail("a state is written in a branch or a loop", "write it behind, with what the block returns")
    if made.dtype is not state.value.dtype or made.shape != state.value.shape:
        c.fail(f"{made!r} is not of the state's type: {state.value!r}", AGAIN)
    state.value = made
    return ()


@translates("slice_update")
def slice_update(c: Call) -> Operand:
    """A tensor with a range of elements, between two places, written over."""
    x, update = c.operand(), c.operand("update")
    extents, sizes = static_sizes(x.shape), static_sizes(update.shape)
    if extents is None or sizes is None:
        c.fail("it writes over a tensor of a symbolic size", "convert it with fixed shapes")
    no = [0] * x.rank
    if any(s != 1 for s in c.ints("stride", [1] * x.rank)):
        c.fail("it writes every so many elements", "write elements that lie side by side")
    from_start, dropped = c.ints("begin_mask", no), c.ints("squeeze_mask", no)
    own = iter(sizes)
    whole = [1 if d else next(own, 0) for d in dropped]
    begin = c.operand("begin")
    if not len(from_start) == len(dropped) == x.rank or list(static_sizes(begin.shape) or ()) != [x.rank]:
        c.fail(f"its ranges are not those of {x!r}", AGAIN)
    if next(own, None) is not None or any(not 0 < w <= e for w, e in zip(whole, extents, strict=True)):
        c.fail(f"{update!r} fits no range of {x!r}", AGAIN)
    places = _from_front(c, begin, from_start, extents)
    return write_window(c, x, c.reshape(update, whole), places, whole, extents)


def _from_front(c: Call, begin: Operand, from_start: list[int], extents: list[int]) -> list[Operand]:
    """Returns the first place along each dimension, counted from the front."""
    at = c.cast(begin, i64)
    sizes = CompileTimeConstant(np.array(extents, np.int64))
    front = c.add("where", c.add("less", at, c.scalar(0, i64)), c.add("add", at, sizes), at)
    return [
        c.scalar(0, i64) if masked else c.add("gather", front, c.scalar(d, i64), axis=0)
        for d, masked in enumerate(from_start)
    ]
