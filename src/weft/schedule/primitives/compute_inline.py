"""`compute_inline`: a producer's formula takes the place of its consumers' reads.

for i in range(0, 8):
    A[i] = f(i)                ->       for i in range(0, 8):
for i in range(0, 8):                       B[i] = f(i) + 1
    B[i] = A[i] + 1
"""

from __future__ import annotations

from weft.ir.expr import Expr
from weft.ir.rewrite import substitute
from weft.loop.nodes import NOTHING, Block, Function, Stmt
from weft.schedule.dependence import check_structured
from weft.schedule.inlining import axes_written, check_plain, replace_loads, with_body
from weft.schedule.inputs import check_inputs
from weft.schedule.placing import check_intermediate, check_movable, readers
from weft.schedule.primitive import primitive
from weft.schedule.rebind import map_blocks
from weft.schedule.state import BlockRef, Change
from weft.schedule.tree import block_path, drop_alloc, replace, the_block


@primitive
def compute_inline(fn: Function, block: BlockRef) -> tuple[Change, None]:
    """Computes *block* wherever it is read, and removes it.

    Legal for a block that is one assignment at its plain axes, neither a reduction nor an output of the function. One that is
    never read just goes away.
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
        check_inputs(fn, producer.name, inlined, user.name)
    return Change(inlined), None
