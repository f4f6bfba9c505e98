"""The rows of a group of blocks around reductions: the leading axes that all of them share, and no value crosses.

for i: for k: M[i] = max(M[i], X[i, k])
for i, j:     E[i, j] = exp(X[i, j] - M[i])         # i is the row: all of these may be computed for one i after another
for i, k:     S[i] += E[i, k]
for i, j:     Y[i, j] = E[i, j] / S[i]
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import free_vars
from weft.loop import Block, Load
from weft.schedule.rules.block_facts import inputs_of, is_reduction, spatial_axes


def shared_rows(blocks: Sequence[Block]) -> int:
    """Returns how many leading axes of the last of *blocks* are outside of every reduction, and shared with all blocks.

    Along them, each block reads only elements of its own row from the results of the other blocks.
    """
    final = blocks[-1]
    made = {r.buffer for b in blocks for r in b.writes}
    depth = min(_leading(final, b) for b in blocks)
    depth = min([depth, *[_of_own_row(b, x, depth) for b in blocks for x in inputs_of(b) if x.buffer in made]])
    return min(depth, len(spatial_axes(final))) if is_reduction(final) else depth


def _leading(final: Block, block: Block) -> int:
    """Returns how many leading axes of *block* have the same extents as those of *final* and no reduction before them."""
    count = 0
    for a, b in zip(spatial_axes(final), spatial_axes(block), strict=False):
        if a.extent is not b.extent:
            break
        count += 1
    if not is_reduction(block) and not is_reduction(final) and block is not final:
        return count
    return min(count, len(spatial_axes(block)))


def _of_own_row(block: Block, load: Load, depth: int) -> int:
    """Returns up to which of the first *depth* dimensions the indices of *load* depend on as many leading axes alone.

    An argsort's search reads every rank of its vector: at each element, all ranks would be recomputed.
    """
    axes = [a.var for a in spatial_axes(block)]
    while any(not set(free_vars(i)) <= set(axes[:depth]) for i in load.indices[:depth]):
        depth -= 1
    return depth
