"""How long scheduling takes: it is part of every compilation."""

from __future__ import annotations

from time import process_time

from tests.schedule.programs import conv2d

from weft.loop.nodes import Program
from weft.schedule import Schedule

LIMIT_S = 0.15  # some ten times what it takes, for slow and busy machines


def test_a_tiled_convolution() -> None:
    assert min(timed(conv2d(64, 56, 56, 64).program) for _ in range(3)) < LIMIT_S


def timed(program: Program) -> float:
    """Returns the seconds that twelve steps take."""
    start = process_time()
    s = Schedule(program)
    pad, conv, relu = s.blocks()
    o, i, j = s.loops(relu)
    oo, oi = s.split(o, [None, 16])
    jo, ji = s.split(j, [None, 14])
    s.reorder([oo, i, jo, oi, ji])
    s.compute_at(conv, jo)
    s.compute_at(pad, i)
    *tile, rc, ri, rj = s.loops(conv)[3:]
    rco, rci = s.split(rc, [None, 8])
    s.reorder([rco, ri, rj, rci, *tile])
    s.decompose_reduction(conv, rco)
    s.set_scope(conv, "register")
    s.vectorize(ji)
    s.unroll(oi)
    s.parallel(s.fuse([oo, i]))
    return process_time() - start
