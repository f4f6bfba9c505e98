"""Random schedule steps: each is tried on whatever loops and blocks there are, and may be refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeAlias

from weft.loop.nodes import For
from weft.loop.visit import statements
from weft.schedule import BlockRef, LoopRef, Schedule
from weft.schedule.nest import parts_of
from weft.schedule.placing import read_buffers, readers, written_buffers
from weft.schedule.tree import block_path, blocks_in, loop_path, loops_on, the_block, the_loop
from weft.support.errors import ScheduleError

Step: TypeAlias = Callable[[Schedule, random.Random], None]


def _loops(s: Schedule) -> list[LoopRef]:
    return [LoopRef(f.var) for f in statements(s.function.body) if isinstance(f, For)]


def _loop(s: Schedule, r: random.Random) -> LoopRef:
    return r.choice(_loops(s))


def _block(s: Schedule, r: random.Random) -> BlockRef:
    return r.choice(s.blocks())


def _around(s: Schedule, block: BlockRef) -> list[LoopRef]:
    return [LoopRef(f.var) for f in loops_on(block_path(s.function, block))]


def _split(s: Schedule, r: random.Random) -> None:
    factors: list[int | None] = [None, r.choice([2, 2, 3, 4, 5])]
    if r.random() < 0.2:
        factors.append(2)
    if r.random() < 0.2:
        factors.reverse()
    s.split(_loop(s, r), factors)


def _fuse(s: Schedule, r: random.Random) -> None:
    loops = _around(s, _block(s, r))
    n = r.randrange(max(1, len(loops)))
    s.fuse(loops[n : n + r.choice([2, 2, 3])])


def _reorder(s: Schedule, r: random.Random) -> None:
    loops = _around(s, _block(s, r))
    n = r.randrange(max(1, len(loops) - 1))
    some = loops[n : n + r.choice([2, 2, 3, 4])]
    s.reorder(r.sample(some, len(some)))


def _compute_at(s: Schedule, r: random.Random) -> None:
    block = _block(s, r)
    users = readers(s.function, the_block(block_path(s.function, block)))
    near = [f for u in users for f in _around(s, BlockRef(u.name))]
    s.compute_at(block, r.choice(near or _loops(s)))


def _reverse_compute_at(s: Schedule, r: random.Random) -> None:
    block = _block(s, r)
    wanted = set(read_buffers(the_block(block_path(s.function, block))))
    makers = [b for b in blocks_in(s.function.body) if wanted & set(written_buffers(b))]
    near = [f for m in makers for f in _around(s, BlockRef(m.name))]
    s.reverse_compute_at(block, r.choice(near or _loops(s)))


def _decompose(s: Schedule, r: random.Random) -> None:
    reductions = [b for b in s.blocks() if the_block(block_path(s.function, b)).init is not None]
    block = r.choice(reductions or s.blocks())
    s.decompose_reduction(block, r.choice(_around(s, block) or _loops(s)))


def _rfactor(s: Schedule, r: random.Random) -> None:
    reductions = [b for b in s.blocks() if the_block(block_path(s.function, b)).init is not None]
    block = r.choice(reductions or s.blocks())
    s.rfactor(block, r.choice(_around(s, block) or _loops(s)))


def _cache_read(s: Schedule, r: random.Random) -> None:
    block = _block(s, r)
    known = read_buffers(the_block(block_path(s.function, block)))
    if known:
        s.cache_read(block, r.choice(known).name, "local")


def _tile(s: Schedule, r: random.Random) -> None:
    loops = _around(s, _block(s, r))
    n = r.randrange(max(1, len(loops) - 1))
    s.tile(loops[n : n + 2], [r.choice([2, 3]), r.choice([2, 4])])


def _rolling_buffer(s: Schedule, r: random.Random) -> None:
    block = _block(s, r)
    s.rolling_buffer(block, r.choice(_around(s, block) or _loops(s)))


def _software_pipeline(s: Schedule, r: random.Random) -> None:
    loop = _loop(s, r)
    count = len(parts_of(the_loop(loop_path(s.function, loop))))
    s.software_pipeline(loop, sorted([0, 1, *[r.choice([0, 1, 2]) for _ in range(count - 2)]]))


def _partition(s: Schedule, r: random.Random) -> None:
    s.partition(_loop(s, r), [r.choice([1, 2, 3, -1, -2])])


STEPS: tuple[tuple[int, Step], ...] = (
    (5, _split),
    (3, _fuse),
    (5, _reorder),
    (7, _compute_at),
    (7, _reverse_compute_at),
    (2, lambda s, r: s.compute_root(_block(s, r))),
    (2, _tile),
    (3, _rolling_buffer),
    (3, _software_pipeline),
    (1, lambda s, r: s.double_buffer(_block(s, r), _loop(s, r))),
    (1, lambda s, r: s.storage_align(_block(s, r), 0, 8)),
    (1, _partition),
    (1, lambda s, r: void(s.add_unit_loop(_block(s, r)))),
    (3, _decompose),
    (2, _rfactor),
    (1, _cache_read),
    (1, lambda s, r: void(s.cache_write(_block(s, r), "local"))),
    (2, lambda s, r: s.compute_inline(_block(s, r))),
    (2, lambda s, r: s.reverse_compute_inline(_block(s, r))),
    (4, lambda s, r: s.parallel(_loop(s, r))),
    (3, lambda s, r: s.vectorize(_loop(s, r))),
    (1, lambda s, r: s.unroll(_loop(s, r))),
    (1, lambda s, r: s.set_scope(_block(s, r), "local")),
)


def void(_: object) -> None:
    """Drops a result."""


def step(s: Schedule, r: random.Random) -> bool:
    """Tries one step; tells whether it was accepted. Any error but `ScheduleError` is a bug and is let through."""
    chosen = r.choices([f for _, f in STEPS], [w for w, _ in STEPS])[0]
    before = s.program
    try:
        chosen(s, r)
    except ScheduleError:
        assert s.program is before
        return False
    return s.program is not before
