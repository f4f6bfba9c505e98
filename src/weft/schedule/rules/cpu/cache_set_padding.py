"""Padded strides of intermediate buffers against conflicts in cache sets.

A transform writes or reads a vector of each of many matrices, one after another. Where the matrices lie a power of two bytes
apart, all these vectors map to the same few sets of the first-level cache and evict one another (conflict misses).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weft.cost import Planner
from weft.ir import ONE, Const, Expr, Var
from weft.loop import Block, Buffer
from weft.schedule.cursors.state import BlockRef
from weft.schedule.cursors.tree import alloc_of
from weft.schedule.legality.placement import writers
from weft.schedule.rules.block_facts import block_of, inputs_of
from weft.schedule.schedule import Schedule


def pad_cache_sets(
    s: Schedule, ref: BlockRef, producers: Sequence[BlockRef], chosen: Iterable[Var], p: Planner
) -> None:
    """Gives the intermediate buffers in memory that a transform uses strides of an odd number of cache lines.

    *producers* are the transforms computed inside *ref*, *chosen* the axes on which any of their formulas selects. The padded
    stride is that of the last dimension along which elements are used together: one of those axes, or constants, index it.
    """
    blocks = [block_of(s, r) for r in (ref, *producers)]
    together = {*chosen, *[v for b in blocks for v in _read_by_constants(b, blocks)]}
    for block in blocks:
        uses = [(w.buffer, [r.begin for r in w.ranges]) for w in block.writes]
        uses += [(x.buffer, list(x.indices)) for x in inputs_of(block)]
        found = [(b, _last_used_together(b, i, together)) for b, i in uses]
        for buffer, dim in {b: d for b, d in found if d is not None}.items():
            _align(s, buffer, dim, p)


def _read_by_constants(block: Block, users: Sequence[Block]) -> list[Var]:
    """Returns the axes of *block* whose dimension of the result *users* index by constants."""
    [written] = block.writes
    loads = [x for u in users for x in inputs_of(u) if x.buffer is written.buffer]
    pairs = [(r.begin, x.indices[d]) for x in loads for d, r in enumerate(written.ranges)]
    return [v for v, i in pairs if isinstance(v, Var) and isinstance(i, Const)]


def _last_used_together(buffer: Buffer, indices: Sequence[Expr], chosen: set[Var]) -> int | None:
    """Returns the last dimension of extent above 1, except the innermost, that an axis of *chosen* or a constant indexes."""
    sizes = list(zip(buffer.shape, indices, strict=True))[:-1]
    found = [d for d, (n, i) in enumerate(sizes) if n is not ONE and (i in chosen or isinstance(i, Const))]
    return found[-1] if found else None


def _align(s: Schedule, buffer: Buffer, dim: int, p: Planner) -> None:
    if buffer.scope != "global" or buffer.strides is not None or alloc_of(s.function.body, buffer) is None:
        return
    for writer in writers(s.function, buffer)[:1]:
        line = p.line // buffer.dtype.bytes
        s.storage_align(BlockRef(writer.name), dim, 2 * line, line)
