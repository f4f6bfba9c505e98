"""Templates of a matrix product, at the top of a module, so that workers can import them."""

from __future__ import annotations

from weft.schedule import Schedule
from weft.tune.template import Knobs


def tiled(s: Schedule, knobs: Knobs) -> None:
    i, j, k = s.loops(s.block("matmul"))
    i0, i1 = s.split(i, knobs.define_split("rows", s.extent(i), parts=2, most=8))
    j0, j1 = s.split(j, knobs.define_split("columns", s.extent(j), parts=2, most=32))
    k0, k1 = s.split(k, knobs.define_split("depth", s.extent(k), parts=2, most=4))
    outer = knobs.define_reorder("outer", [i0, j0])
    s.reorder([*outer, k0, *knobs.define_reorder("inner", [k1, i1]), j1])
    knobs.define_annotate("vector", s, j1, ("none", "vectorize", "unroll"))
    if knobs.define_choice("parallel", [False, True]):
        s.parallel(outer[0])


def refusing(s: Schedule, knobs: Knobs) -> None:
    (_, _, k) = s.loops(s.block("matmul"))
    knobs.define_annotate("kind", s, k, ("none", "vectorize"))


def leave_serial(s: Schedule, knobs: Knobs) -> None:
    """The loops as they are."""
    del s, knobs


def vectorize_at_once(s: Schedule, knobs: Knobs) -> None:
    """Vectorises the first loop, legal or not."""
    del knobs
    (block, *_) = s.blocks()
    s.vectorize(s.loops(block)[0])


def share_or_unroll(s: Schedule, knobs: Knobs) -> None:
    """Shares the first loop among threads, or writes it out; where each element needs the last, only that is legal."""
    (block,) = s.blocks()
    (loop,) = s.loops(block)
    kind = knobs.define_choice("kind", ["none", "parallel", "unroll"])
    if kind == "parallel":
        s.parallel(loop)
    elif kind == "unroll":
        s.unroll(loop)
