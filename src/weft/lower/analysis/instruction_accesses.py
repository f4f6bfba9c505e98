"""The elements of a buffer that a call of a tensor instruction accesses, from an address on."""

from __future__ import annotations

from typing import Final

from weft.ir import Bounds, Const, Expr, Var, index, prove, simplify, substitute
from weft.loop import ASYNC_WAIT, ATOMICS, Address, Buffer, Call
from weft.targets.instructions import INTRINSICS

NOWHERE: Final = Bounds()
"""The bounds where nothing is known of a variable."""


def fixed_dimensions(call: Call, address: Address, bounds: Bounds = NOWHERE) -> int:
    """Returns how many dimensions *call* stays in at the index of *address*, the first ones; it may access all of the others.

    One for the destination of a copy that a thread has waited for, and all for an atomic update. 0 for a call that is no tensor
    instruction, and where the strides of its operand are not known. *bounds* are those of the variables around the call.
    """
    if call.callee == ASYNC_WAIT:
        return 1
    if call.callee in ATOMICS:
        return address.buffer.rank
    last, shape = _last_element(call, address), address.buffer.shape
    if last is None or address.buffer.strides is not None:
        return 0
    size, reached = 1, simplify(index(last))
    for left in range(len(shape), 0, -1):
        if prove(reached < index(size), bounds):
            return left
        extent = shape[left - 1]
        if not isinstance(extent, Const):
            return 0
        reached, size = reached + address.indices[left - 1] * index(size), size * int(extent.value)
    return 0


def _last_element(call: Call, address: Address) -> int | None:
    """Returns the last element that the instruction accesses, counted from *address*; None where that is not known."""
    known = INTRINSICS.get(call.callee)
    if known is None:
        return None
    given = dict(zip(known.semantics.params, call.args, strict=True))
    values: dict[Var, Expr] = {p: a for p, a in given.items() if isinstance(p, Var)}
    buffer = next((p for p, a in given.items() if a is address and isinstance(p, Buffer)), None)
    if buffer is None:
        return None
    steps = [(n - 1) * substitute(s, values) for n, s in zip(buffer.shape, buffer.row_major_strides(), strict=True)]
    sizes = [simplify(e) for e in steps]
    return sum([int(e.value) for e in sizes if isinstance(e, Const)]) if all(map(_is_size, sizes)) else None


def _is_size(e: Expr) -> bool:
    return isinstance(e, Const) and int(e.value) >= 0
