"""Branches and loops, whose blocks become regions."""

from __future__ import annotations

from collections.abc import Sequence

from weft.frontends.coreml.call import AGAIN, Call
from weft.frontends.coreml.registry import translates
from weft.graph.builder import Builder, CompileTimeConstant, Operand
from weft.graph.composites.branches_and_loops import branch, loop


@translates("cond")
def cond(c: Call) -> tuple[Operand, ...]:
    """One of two blocks."""
    if len(c.blocks) != 2:
        c.fail(f"it has {len(c.blocks)} blocks", AGAIN)
    condition = c.operand("pred")
    if isinstance(condition, CompileTimeConstant):
        return tuple(c.blocks[0 if condition.array.all() else 1](c, []))
    return tuple(branch(c, condition, lambda r: c.blocks[0](r, []), lambda r: c.blocks[1](r, [])))


@translates("while_loop")
def while_loop(c: Call) -> tuple[Operand, ...]:
    """A loop, of a block that says whether it goes on, and one that makes the next states."""
    if len(c.blocks) != 2:
        c.fail(f"it has {len(c.blocks)} blocks", AGAIN)
    first = c.operands("loop_vars")

    def step(r: Builder, number: Operand, now: Sequence[Operand]) -> tuple[Operand, list[Operand], list[Operand]]:
        made = c.blocks[1](r, now)
        return c.blocks[0](r, made)[0], made, []

    last, _ = loop(c, None, c.blocks[0](c, first)[0], first, step)
    return tuple(last)
