"""Calls of functions of the module, which are written out."""

from __future__ import annotations

from weft.frontends.jax.call import AGAIN, Call
from weft.frontends.jax.registry import translates
from weft.graph.builder import CompileTimeConstant, Operand


@translates("call", "composite")
def call(c: Call) -> tuple[Operand, ...]:
    """The results of a function; a composite says which one computes it."""
    named = c.value("decomposition", "callee") or next(iter(c.operation.words), None)
    if not isinstance(named, str):
        c.fail("it calls no function", AGAIN)
    return tuple(c.program.run(named, c.operands, c))


@translates("custom_call @shape_assertion")
def shape_assertion(c: Call) -> tuple[Operand, ...]:
    """Checks a condition on sizes, which the caller's sizes fulfil unless it is known to be false."""
    condition = c.operand(0)
    if isinstance(condition, CompileTimeConstant) and not condition.symbolic and not condition.array.all():
        message = str(c.value("error_message"))
        for k, value in enumerate(c.operands[1:]):
            known = value.array.item() if isinstance(value, CompileTimeConstant) and not value.rank else "?"
            message = message.replace(f"{{{k}}}", str(known))
        c.fail(message, "give other sizes")
    return ()
