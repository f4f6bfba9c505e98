"""`compute_inline`: a producer's formula takes the place of its consumers' reads.

for i in range(0, 8):
    A[i] = f(i)                ->       for i in range(0, 8):
for i in range(0, 8):                       B[i] = f(i) + 1
    B[i] = A[i] + 1
"""

from __future__ import annotations

from weft.ir import Expr, substitute
from weft.loop import NOTHING, Block, Function, Stmt
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.rebind import map_blocks
from weft.schedule.cursors.state import BlockRef, Change
from weft.schedule.cursors.tree import block_path, drop_alloc, replace, the_block
from weft.schedule.legality.flow_dependence import check_structured
from weft.schedule.legality.placement import check_intermediate, check_movable, readers
from weft.schedule.legality.reaching_writes import check_reaching_writes
from weft.schedule.rewriting.inlining import axes_written, check_plain, replace_loads, with_body


@primitive
def compute_inline(fn: Function, block: BlockRef) -> tuple[Change, None]:
    """Substitutes the formula of *block* for each read of its result, and removes the block.

    Legal for a block that is one assignment at its plain axes, neither a reduction nor an output of the function. One that is
    never read is removed.
    """
    path = block_path(fn, block)
    producer = the_block(path)
    check_structured(fn.body)
    check_intermediate(fn, producer)
    store = check_plain(fn, path)
    axes = axes_written(producer, store)
    users = readers(fn, producer)

    def value(indices: tuple[Expr, ...]) -> Expr:
        return substitute(store.value, dict(zip(axes, indices, strict=True)))

    def inline(b: Block) -> Stmt:
        if all(r.buffer is not store.buffer for r in b.reads):
            return b
        init = None if b.init is None else replace_loads(b.init, store.buffer, value)
        return with_body(b, replace_loads(b.body, store.buffer, value), init)

    body = map_blocks(replace(check_movable(fn, path, producer), NOTHING), inline)
    inlined = fn.with_body(drop_alloc(body, store.buffer))
    for user in users:
        check_reaching_writes(fn, producer.name, inlined, user.name)
    return Change(inlined), None
