"""The declared effects of callees, and what follows where nothing is declared."""

from __future__ import annotations

import pytest

from weft.ir import ZERO
from weft.loop import (
    BARRIER,
    POP_TOKEN,
    PUSH_TOKEN,
    WARP_BARRIER,
    Address,
    Buffer,
    Call,
    Effects,
    If,
    Token,
    Waits,
    addresses_touched,
    declare_effects,
    effects_of,
    is_hint,
    may_write,
    prefetch,
    seq,
    store,
)
from weft.support.dtypes import f32

A, B = Buffer("A", (8,), f32), Buffer("B", (8,), f32)
A0, B0 = Address(A, (ZERO,)), Address(B, (ZERO,))


def test_a_prefetch_is_a_hint() -> None:
    s = prefetch(A, ZERO)
    assert is_hint(s)
    assert addresses_touched(s) == ([], [])
    assert not may_write(s, {A})


@pytest.mark.parametrize(
    ("callee", "effects"),
    [
        (BARRIER, Effects(barrier=Waits.BLOCK)),
        (WARP_BARRIER, Effects(barrier=Waits.WARP)),
        (PUSH_TOKEN, Effects(token=Token.PUSH)),
        (POP_TOKEN, Effects(token=Token.POP)),
    ],
)
def test_what_orders_accesses_is_no_hint(callee: str, effects: Effects) -> None:
    s = Call(callee, ())
    assert effects_of(s) == effects
    assert effects.orders
    assert not is_hint(s)
    assert may_write(s, {A})


def test_an_undeclared_call_may_do_anything() -> None:
    s = Call("tests.undeclared", (A0,))
    assert effects_of(s) is None
    assert not is_hint(s)
    assert addresses_touched(s) == ([A0], [A0])
    assert may_write(If(A0.indices[0] < 1, s, None), {B})
    assert not may_write(s, set())


def test_a_declaration_is_asked_once_and_says_which_arguments() -> None:
    asked: list[int] = []

    def effects() -> Effects:
        asked.append(1)
        return Effects(reads=frozenset({0}), writes=frozenset({1}))

    declare_effects("tests.copy", effects)
    s = Call("tests.copy", (A0, B0))
    assert addresses_touched(s) == ([A0], [B0])
    assert addresses_touched(s) == ([A0], [B0])
    assert asked == [1]
    assert may_write(s, {B})
    assert not may_write(s, {A})
    assert may_write(seq(s, store(A, [0], 0)), {A})
