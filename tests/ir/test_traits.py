"""Walks that leave out what has nothing to look for find what a walk through everything finds, in its order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ir.strategies import CONDITIONS, INDICES

from weft.ir import (
    ADDRESSES,
    DIVIDES,
    READS,
    SELECTS,
    Add,
    Expr,
    Node,
    Select,
    Var,
    accesses,
    index,
    map_accesses,
    map_nodes,
    nodes_with,
    post_order,
    reads_memory,
)
from weft.loop import Address, Buffer, For, Load, LoopKind, seq, store
from weft.support.dtypes import f32, i64

A, B = Buffer("a", [64], i64), Buffer("b", [64], f32)
PLACES = st.one_of(INDICES, INDICES.map(lambda e: Load(A, (e,))))
VALUES: st.SearchStrategy[Expr] = st.recursive(
    PLACES.map(lambda e: Load(B, (e,))),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: Add(*p)),
        st.tuples(CONDITIONS, inner, inner).map(lambda p: Select(*p)),
    ),
    max_leaves=6,
)


@given(VALUES, st.sampled_from([READS, ADDRESSES, SELECTS, DIVIDES, READS | DIVIDES]))
def test_nodes_are_found_in_the_order_of_a_whole_walk(e: Expr, traits: int) -> None:
    assert nodes_with(traits, e) == [n for n in post_order(e) if n.trait & traits]


@given(VALUES)
def test_accesses_are_rebuilt_as_by_a_whole_walk(e: Expr) -> None:
    def change(n: Node) -> Node | None:
        return Load(n.buffer, (n.indices[0] + 1,)) if isinstance(n, Load) else None

    assert map_accesses(e, change, {}) is map_nodes(e, change)


def test_what_has_no_accesses_stays() -> None:
    e = Var("i") * 3 + 1
    assert map_accesses(e, lambda n: pytest.fail("there is no access"), {}) is e
    assert accesses(e) == []


def test_an_address_is_an_access_that_reads_nothing() -> None:
    e = Address(B, (Var("i"),))
    assert accesses(e) == [e]
    assert not reads_memory(e)
    assert reads_memory(Address(B, (Load(A, (Var("i"),)),)))


def test_statements_have_the_traits_of_what_is_in_them() -> None:
    i = Var("i")
    first, second = Load(B, (i,)), Load(B, (i // 2,))
    body = seq(store(B, [i], first), store(B, [i + 1], second))
    loop = For(i, index(0), index(8), LoopKind.SERIAL, body, ())
    assert nodes_with(READS, loop) == [first, second]
    assert [type(n).__name__ for n in nodes_with(DIVIDES, loop)] == ["FloorDiv"]


def test_chains_are_walked_without_recursion() -> None:
    e: Expr = Load(A, (index(0),))
    for n in range(50_000):
        e = Add(e, index(n % 7))
    assert len(accesses(e)) == 1
    assert map_accesses(e, lambda n: None, {}) is e
