"""Random bits, a function of a state that counts: those that XLA makes on a CPU, bit by bit."""

from __future__ import annotations

import math
from collections.abc import Sequence

from weft.frontends.jax.call import AGAIN, Call
from weft.frontends.jax.registry import translates
from weft.graph.builder import Operand
from weft.graph.composites.numerics.counter_bits import PhiloxWords, halves, joined, threefry
from weft.graph.composites.sequences import element, stack
from weft.graph.composites.slicing import slice_axes
from weft.support.dtypes import SCALARS, u32, u64
from weft.support.philox import philox

ALGORITHMS = ("DEFAULT", "PHILOX", "THREE_FRY")
_MOST = 1 << 40


@translates("rng_bit_generator")
def rng_bit_generator(c: Call) -> tuple[Operand, ...]:
    """Returns the next state, and bits; the state, u64, is a key and a counter, of 64 bits or with Philox also of 128."""
    state, shape, dtype = c.operand(0, rank=1), c.result_shape(1), c.result_dtype(1)
    name = "algorithm" if c.value("algorithm") is not None else "rng_algorithm"
    algorithm = c.word(name, 0, ALGORITHMS)
    sizes = c.static(state)
    if state.dtype is not u64 or sizes[0] not in ((2,) if algorithm == "THREE_FRY" else (2, 3)):
        c.fail(f"its state {state!r} is not one of {algorithm}", AGAIN)
    if not dtype.is_int or dtype.bits not in (8, 16, 32, 64) or math.prod(shape) > _MOST:
        c.fail(f"it makes {dtype} of shape {shape}", AGAIN)
    parts = [element(c, state, 0, k) for k in range(sizes[0])]
    make = _threefry if algorithm == "THREE_FRY" else _philox
    bits, states = make(c, parts, shape, dtype.bits == 64)
    if dtype.bits < 32:
        bits = c.cast(c.add("bit_and", bits, c.scalar((1 << dtype.bits) - 1, u32)), SCALARS[f"u{dtype.bits}"])
    return stack(c, states, 0), bits if bits.dtype is dtype else c.add("bit_cast", bits, dtype=dtype)


def _threefry(c: Call, state: Sequence[Operand], shape: Sequence[int], wide: bool) -> tuple[Operand, list[Operand]]:
    """Returns u32 or u64 by Threefry, and the next state.

    The two words of a counter are one number of 64 bits; or they are next to one another along the first dimension of an even
    size, else along the largest, of which half as many counters are.
    """
    axis = next(
        (d for d, s in enumerate(shape) if s % 2 == 0), max(range(len(shape)), key=lambda d: shape[d], default=0)
    )
    half = list(shape) if wide else [-(-s // 2) if d == axis else s for d, s in enumerate(shape or [1])]
    counters, after = _counted(c, state[1], math.prod(half))
    words = threefry(c, halves(c, state[0]), halves(c, c.reshape(counters, half)))
    if wide:
        return joined(c, words[0], words[1]), [state[0], after]
    pairs = stack(c, words, axis + 1)
    made = c.reshape(pairs, [2 * s if d == axis else s for d, s in enumerate(half)])
    return c.reshape(slice_axes(c, made, [axis], [0], [(shape or [1])[axis]], [1]), shape), [state[0], after]


def _philox(c: Call, state: Sequence[Operand], shape: Sequence[int], wide: bool) -> tuple[Operand, list[Operand]]:
    """Returns u32 or u64 by Philox, and the next state. A state of two has the key as the upper half of its counter."""
    count = math.prod(shape)
    high = state[2] if len(state) == 3 else state[0]
    counters, after = _counted(c, state[1], -(-count * (1 + wide) // 4))
    carried, carry = (_carried(c, high, state[1], low) for low in (counters, after))
    words = philox(PhiloxWords(c), [*halves(c, counters), *halves(c, carried)], halves(c, state[0]))
    columns = [joined(c, *words[k : k + 2]) for k in (0, 2)] if wide else words
    rows = stack(c, columns, 1)
    flat = c.reshape(rows, [math.prod(c.static(rows))])
    made = c.reshape(slice_axes(c, flat, [0], [0], [count], [1]), shape)
    return made, [state[0], after, *([carry] if len(state) == 3 else [])]


def _counted(c: Call, first: Operand, count: int) -> tuple[Operand, Operand]:
    """Returns *count* counters from *first* on, and the one after them."""
    steps = c.cast(c.add("range", start=0, size=count, step=1), u64)
    return c.add("add", steps, first), c.add("add", first, c.scalar(count, u64))


def _carried(c: Call, high: Operand, before: Operand, low: Operand) -> Operand:
    """Returns the upper halves of counters, one more where the lower *low* began anew."""
    return c.add("add", high, c.cast(c.add("less", low, before), u64))
