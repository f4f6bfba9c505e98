"""`stream_attention`: an attention becomes one loop over blocks of keys, in which each row's softmax is normalized as it goes.

    for i, j, d: S[i, j] += Q[i, d] * K[j, d]
    for i, j:    M[i] = max(M[i], S[i, j])
    for i, j:    L[i] += exp(S[i, j] - M[i])                ->      the loops of `rewriting.attention_loops`
    for i, c, j: O[i, c] += exp(S[i, j] - M[i]) * (1 / L[i]) * V[j, c]

Sums are reassociated.
"""

from __future__ import annotations

from weft.cost import AttentionTile
from weft.ir import Const
from weft.loop import Function
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.state import BlockRef, Change, refuse
from weft.schedule.cursors.tree import block_path, the_block
from weft.schedule.legality.attention_form import attention_of
from weft.schedule.rewriting.attention_fragments import FragmentLoops, has_fragments, narrow_attention
from weft.schedule.rewriting.attention_groups import GroupLoops, has_groups
from weft.schedule.rewriting.attention_loops import AttentionLoops
from weft.schedule.rewriting.attention_splits import SplitLoops, can_split


@primitive
def stream_attention(
    fn: Function,
    block: BlockRef,
    y: int,
    x: int,
    rows: int,
    keys: int,
    warps: int = 0,
    copies: int = 0,
    splits: int = 1,
) -> tuple[Change, None]:
    """Computes the attention whose scores are *block*, which is all that the function computes, by blocks of threads.

    A block has *y* by *x* threads; a thread computes *rows* of the block's rows with *keys* of the keys that the block takes at
    once. With *warps*, a block has *warps* times as many threads, which multiply 16-bit floats in fragments. With *copies* of
    keys and values, these are in memory that a launch asks for, several are fetched ahead, and warps multiply in groups of four.
    With *splits*, the keys are split over so many blocks, whose results a second kernel merges.
    """
    scores = the_block(block_path(fn, block))
    found = attention_of(fn)
    if not all(isinstance(found.extents[v], Const) for v in (found.depth, found.column)):
        refuse("the sizes of a key and of a value are not constants", scores, "bind them, or leave the softmax whole")
    tile = AttentionTile(y, x, rows, keys, warps, copies, splits)
    if splits > 1 and not can_split(found, tile):
        refuse("only keys of constant number are split, and those of no fragments", scores, "leave out the splits")
    if splits > 1:
        return Change(fn.with_body(SplitLoops(found, tile).loops()), algorithm=True), None
    if not warps:
        return Change(fn.with_body(AttentionLoops(found, tile).loops()), algorithm=True), None
    narrow = narrow_attention(found)
    if narrow is None or not has_fragments(narrow, tile):
        refuse("its factors are no matrices of 16-bit floats in whole fragments", scores, "leave out the warps")
    if copies and not has_groups(narrow, tile):
        refuse("its factors are no matrices that groups of warps multiply", scores, "leave out the copies")
    loops = GroupLoops if copies else FragmentLoops
    return Change(fn.with_body(loops(narrow, tile).loops()), algorithm=True), None
