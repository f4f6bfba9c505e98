"""The elements that a call of a tensor instruction accesses: all of a thread's sums, and no others."""

from __future__ import annotations

import pytest

from weft.ir import ZERO, Expr, Var, index
from weft.loop import Address, Buffer, Call
from weft.lower.analysis.instruction_accesses import fixed_dimensions
from weft.support.dtypes import f16, f32

G, T = Var("g"), Var("t")


def product(*at: Expr, stride: Expr | None = None, callee: str = "warp.mma_f16") -> Call:
    """A product to the sums at *at* of a buffer of 4 x 8 fragments."""
    sums = Buffer("P", tuple([index(n) for n in (4, 8, 2, 2)]), f32, "register")
    factor = Buffer("A", (index(4096),), f16, "shared")
    strides = [index(2) if stride is None else stride, *map(index, (36, 1, 20, 1))]
    return Call(callee, (Address(sums, at), Address(factor, (ZERO,)), Address(factor, (ZERO,)), *strides))


@pytest.mark.parametrize(
    ("call", "fixed"),
    [
        (product(G, T, ZERO, ZERO), 2),
        (product(G, T, ZERO, T), 0),  # sums from the middle of a fragment on reach into the next
        (product(G, T, ZERO, ZERO, stride=index(4)), 0),
        (product(G, ZERO, ZERO, ZERO, stride=index(4)), 1),
        (product(G, T, ZERO, ZERO, stride=T), 0),
        (product(G, T, ZERO, ZERO, callee="another"), 0),
    ],
)
def test_dimensions_in_which_a_call_stays(call: Call, fixed: int) -> None:
    address = call.args[0]
    assert isinstance(address, Address)
    assert fixed_dimensions(call, address) == fixed
