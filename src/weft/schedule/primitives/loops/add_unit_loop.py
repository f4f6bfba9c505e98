"""`add_unit_loop`: a block gets a loop of one iteration around it.

S()                            ->       for u in range(0, 1):
                                            S()
"""

from __future__ import annotations

from weft.ir import Var
from weft.loop import Function, for_
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.state import BlockRef, Change, LoopRef, refuse
from weft.schedule.cursors.tree import block_path, loops_on, replace, the_block


@primitive
def add_unit_loop(fn: Function, block: BlockRef, name: str = "u") -> tuple[Change, LoopRef]:
    """Puts a loop of one iteration, called *name*, around *block*; returns the loop."""
    path = block_path(fn, block)
    if any(f.var.name == name for f in loops_on(path)):
        refuse(f"there is a loop {name} around {block.name} already", the_block(path), "choose another name")
    var = Var(name)
    return Change(fn.with_body(replace(path, for_(var, 1, the_block(path)))), in_order=True), LoopRef(var)
