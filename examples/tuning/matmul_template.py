"""A schedule of a matrix product whose numbers are left open, as knobs."""

from weft.schedule import Schedule
from weft.tune.template import Knobs


def schedule_matmul(s: Schedule, knobs: Knobs) -> None:
    """Register tiles, stored once: the sizes of a tile, the order of the loops around it, and unrolled steps are open."""
    product = s.block("C")
    tile = s.cache_write(product, "register")
    i, j = s.loops(tile)
    i0, i1 = s.split(i, knobs.define_split("rows", s.extent(i), parts=2, most=16))
    j0, j1 = s.split(j, knobs.define_split("columns", s.extent(j), parts=2, most=64))
    outer = knobs.define_reorder("outer", [i0, j0])
    s.reorder([*outer, i1, j1])
    s.compute_at(product, outer[-1])
    *inside, depth = s.loops(product)[2:]  # loops of one iteration are none
    k0, k1 = s.split(depth, knobs.define_split("depth", s.extent(depth), parts=2, most=8))
    s.reorder([k0, k1, *inside])
    start = s.decompose_reduction(product, k0)
    knobs.define_annotate("steps", s, k1, ("none", "unroll"))
    for loops in (s.loops(start)[2:], s.loops(product)[4:], s.loops(tile)[2:]):
        for loop in loops[:-1]:
            s.unroll(loop)
        if loops:
            s.vectorize(loops[-1])
