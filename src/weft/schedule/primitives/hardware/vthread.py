"""`vthread`: the iterations of a loop become virtual threads, which lowering interleaves to one stream of instructions.

for v in range(0, 2):                   for v in bound(0, 2, thread="vthread"):
    for k in range(0, 8):      ->           for k in range(0, 8):
        S(v, k)                                 S(v, k)

and lowered:  for k in range(0, 8):
                  S(0, k)
                  S(1, k)
"""

from __future__ import annotations

from weft.loop import Function
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.state import Change, LoopRef
from weft.schedule.primitives.loops.bind import bind


@primitive
def vthread(fn: Function, loop: LoopRef) -> tuple[Change, None]:
    """Runs the iterations of *loop*, a constant number of them, side by side in one stream of instructions.

    Legal where `parallel` is: no iteration may access elements that another writes. Buffers that are used in the loop only are
    privatised to each virtual thread. On a machine whose units load, execute and store apart from one another, one thread's
    loads run while another computes (Chen et al., "TVM", OSDI 2018, section 4.4).
    """
    return bind(fn, loop, "vthread")
