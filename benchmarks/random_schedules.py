"""Random shapes, each with a random schedule of the kind that rules and tuners choose from."""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np

from weft.ir import free_vars
from weft.loop import Program
from weft.schedule import BlockRef, LoopRef, Schedule, block_of, reduce_axes
from weft.support.errors import ScheduleError
from weft.te import Tensor, compute, max_, placeholder, reduce_axis, sum_, to_program

SMALLEST, LARGEST = 2e5, 6e7
"""Steps of a program's innermost loops, were it not scheduled: some microseconds to some milliseconds."""

LARGEST_TILE = 640
"""Elements of a tile: forty vectors, which are more than there are registers already."""

Rng = np.random.Generator


@dataclass(frozen=True)
class Sample:
    """A program with its schedule, and what it is in words."""

    label: str
    schedule: Schedule

    @property
    def program(self) -> Program:
        """Return the scheduled program."""
        return self.schedule.program


def size(rng: Rng, low: int, high: int) -> int:
    return round(float(np.exp(rng.uniform(np.log(low), np.log(high)))))


def matmul(rng: Rng) -> tuple[str, list[Tensor], Tensor, float]:
    m, n, k = size(rng, 4, 500), size(rng, 8, 700), size(rng, 8, 900)
    a, b, r = placeholder((m, k), name="a"), placeholder((k, n), name="b"), reduce_axis(k, "r")
    c = compute((m, n), lambda i, j: sum_(a[i, r] * b[r, j], [r]), "c")
    return f"matmul {m}x{k}x{n}", [a, b], c, float(m) * n * k


def convolution(rng: Rng) -> tuple[str, list[Tensor], Tensor, float]:
    """Return a convolution with the channels last in memory."""
    pixels, inner, outer = size(rng, 5, 40), size(rng, 3, 128), size(rng, 8, 192)
    kernel, stride = int(rng.choice([1, 3, 5])), int(rng.choice([1, 1, 2]))
    side = (pixels - 1) * stride + kernel
    x, w = placeholder((side, side, inner), name="x"), placeholder((kernel, kernel, inner, outer), name="w")
    p, q, c = reduce_axis(kernel, "p"), reduce_axis(kernel, "q"), reduce_axis(inner, "c")
    y = compute(
        (pixels, pixels, outer),
        lambda i, j, o: sum_(x[i * stride + p, j * stride + q, c] * w[p, q, c, o], [p, q, c]),
        "y",
    )
    label = f"conv {pixels}x{pixels} {inner}->{outer} k{kernel} s{stride}"
    return label, [x, w], y, float(pixels) ** 2 * kernel**2 * inner * outer


def depthwise(rng: Rng) -> tuple[str, list[Tensor], Tensor, float]:
    pixels, channels, kernel = size(rng, 7, 80), size(rng, 16, 400), int(rng.choice([3, 5]))
    stride = int(rng.choice([1, 2]))
    side = (pixels - 1) * stride + kernel
    x, w = placeholder((side, side, channels), name="x"), placeholder((kernel, kernel, channels), name="w")
    p, q = reduce_axis(kernel, "p"), reduce_axis(kernel, "q")
    y = compute(
        (pixels, pixels, channels),
        lambda i, j, c: sum_(x[i * stride + p, j * stride + q, c] * w[p, q, c], [p, q]),
        "y",
    )
    return (
        f"depthwise {pixels}x{pixels} {channels} k{kernel} s{stride}",
        [x, w],
        y,
        float(pixels) ** 2 * kernel**2 * channels,
    )


def reduction(rng: Rng) -> tuple[str, list[Tensor], Tensor, float]:
    """Return a sum or a maximum over the middle dimension."""
    outer, middle, last = size(rng, 2, 200), size(rng, 4, 800), size(rng, 16, 800)
    x, r = placeholder((outer, middle, last), name="x"), reduce_axis(middle, "r")
    combine = sum_ if rng.random() < 0.5 else max_
    y = compute((outer, last), lambda i, j: combine(x[i, r, j], [r]), "y")
    return f"reduce {outer}x{middle}x{last}", [x], y, float(outer) * middle * last


KINDS: tuple[Callable[[Rng], tuple[str, list[Tensor], Tensor, float]], ...] = (
    matmul,
    convolution,
    depthwise,
    reduction,
)


def random_sample(rng: Rng, kind: int) -> Sample:
    """Return a program of a *kind* with a random schedule."""
    while True:
        label, inputs, output, work = KINDS[kind % len(KINDS)](rng)
        if not SMALLEST <= work <= LARGEST:
            continue
        s = Schedule(to_program(inputs, [output], "f"))
        try:
            return Sample(f"{label}: {_schedule(s, rng)}", s)
        except ScheduleError:  # some choices don't go together
            continue


def _schedule(s: Schedule, rng: Rng) -> str:
    """Compute a reduction in tiles: of registers mostly, sometimes of memory; vectorised mostly. Return it in words."""
    (ref,) = s.blocks()
    if rng.random() < 0.1:
        return _plain(s, ref, rng)
    copy = s.cache_write(ref, "register")
    outer, inner, tile = _split(s, list(s.loops(copy)), rng)
    order = [outer[n] for n in rng.permutation(len(outer))]
    s.reorder([*order, *inner])
    s.compute_at(ref, order[-1])
    s.set_scope(ref, "register")
    depth = len(order)
    loops = list(s.loops(ref))[depth:]
    reduced = _reducing(s, ref, loops)
    spatial = [f for f in loops if f not in reduced]
    reduced = [reduced[n] for n in rng.permutation(len(reduced))]
    words = ""
    if rng.random() < 0.3:
        rest, piece = s.split(reduced[-1], [None, _at_most(s.extent(reduced[-1]), int(rng.choice([2, 4])))])
        reduced = [*reduced[:-1], rest]
        spatial = [piece, *spatial]
        words = " unrolled reduction"
    s.reorder([*reduced, *spatial])
    start = s.decompose_reduction(ref, reduced[0])
    is_vector = rng.random() < 0.9 or prod(tile) > 16
    for group in (list(s.loops(start))[depth:], spatial, inner):
        _straighten(s, group, is_vector)
    return f"tile {tile} order {[x.var.name for x in order]}{words}{'' if is_vector else ' scalar'}"


def _reducing(s: Schedule, ref: BlockRef, loops: list[LoopRef]) -> list[LoopRef]:
    """Return those of *loops* that reduce."""
    block = block_of(s, ref)
    bound = {
        v for a, b in zip(block.axes, block.bindings, strict=True) if a in reduce_axes(block) for v in free_vars(b)
    }
    return [f for f in loops if f.var in bound]


def _split(s: Schedule, loops: list[LoopRef], rng: Rng) -> tuple[list[LoopRef], list[LoopRef], list[int]]:
    """Split every loop: the last by vectors, one or two others by some rows."""
    sizes = [1] * len(loops)
    sizes[-1] = _at_most(s.extent(loops[-1]), int(rng.choice([8, 16, 16, 32, 48, 64])))
    for n in rng.permutation(len(loops) - 1)[: int(rng.integers(0, 3))]:
        size = _at_most(s.extent(loops[n]), int(rng.choice([1, 2, 3, 4, 6, 8, 12, 14])))
        sizes[n] = size if prod(sizes) * size <= LARGEST_TILE else 1
    pairs = [s.split(f, [None, size]) for f, size in zip(loops, sizes, strict=True)]
    return [p[0] for p in pairs], [p[1] for p in pairs], sizes


def _at_most(extent: int | None, size: int) -> int:
    """Return *size*, or all of the extent where that is smaller."""
    return size if extent is None else min(size, extent)


def _straighten(s: Schedule, loops: list[LoopRef], is_vector: bool) -> None:
    for loop in loops[:-1]:
        s.unroll(loop)
    if is_vector and loops:
        s.vectorize(loops[-1])
    elif loops:
        s.unroll(loops[-1])


def _plain(s: Schedule, ref: BlockRef, rng: Rng) -> str:
    """Add to the result in memory, in loops of a random order, vectorised or not."""
    loops = list(s.loops(ref))
    last = next(f for n, f in enumerate(loops) if n == len(s.loops(ref)) - 1)
    order = [loops[n] for n in rng.permutation(len(loops))]
    s.reorder(order)
    return f"plain, {len(order)} loops, innermost {'the last' if order[-1] is last else 'another'}"
