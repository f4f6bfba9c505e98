"""Helpers of the two inlining primitives."""

from __future__ import annotations

from collections.abc import Callable

from weft.ir import TRUE, Expr, Node, Var, map_nodes
from weft.loop import Block, Buffer, Function, Load, Stmt, Store, block_regions
from weft.schedule.cursors.state import refuse
from weft.schedule.cursors.tree import Path, plain_store, the_block
from weft.schedule.legality.bijection import instance_map


def check_plain(fn: Function, path: Path) -> Store:
    """Returns the single, unguarded assignment of the block at the end of *path*; refuses any other block."""
    block = the_block(path)
    if block.init is not None:
        refuse(f"{block.name} is a reduction", block, "compute_at moves a reduction to where it is used")
    store = plain_store(block)
    if any(r.buffer is store.buffer for r in block.reads):
        refuse(f"{block.name} reads what it writes", block, "a reduction can't be inlined")
    if block.predicate is not TRUE:
        found = instance_map(fn, path)
        if found is None or not found.surjective:
            refuse(f"{block.name} runs under a condition", block, "write the condition into the value, by select")
    return store


def axes_written(block: Block, store: Store) -> list[Var]:
    """Returns the axis of each dimension that *store* writes; refuses indices of another form."""
    axes = {a.var for a in block.axes}
    found = [i for i in store.indices if isinstance(i, Var) and i in axes]
    if len(found) != len(store.indices) or len(set(found)) != len(axes):
        refuse(
            f"{block.name} does not write {store.buffer.name} at its plain axes, each once",
            block,
            "only an assignment such as A[i, j] = ... can be inlined",
        )
    return found


def with_body(block: Block, body: Stmt, init: Stmt | None) -> Block:
    """Returns *block* with another body, its regions derived anew."""
    reads, writes = block_regions(body, init)
    b = block
    return Block(b.name, b.axes, b.bindings, b.predicate, reads, writes, init, body, b.notes)


def replace_loads(root: Stmt, buffer: Buffer, value: Callable[[tuple[Expr, ...]], Expr]) -> Stmt:
    """Replaces each load of *buffer* under *root* by the result of *value* for its indices."""

    def change(n: Node) -> Node | None:
        if isinstance(n, Block) and any(r.buffer is buffer for r in n.reads):
            return with_body(n, n.body, n.init)
        if not isinstance(n, Load) or n.buffer is not buffer:
            return None
        if n.dtype is not buffer.dtype:
            refuse(
                f"a vector of {buffer.name} is read at once",
                hint="inline before choosing an instruction for its reader",
            )
        return value(n.indices)

    return map_nodes(root, change)
