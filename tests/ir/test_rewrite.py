from __future__ import annotations

import pytest

from weft.ir import (
    Add,
    Const,
    Expr,
    FloorDiv,
    Mul,
    Node,
    Rules,
    Var,
    free_vars,
    index,
    map_nodes,
    mentions,
    post_order,
    rewrite,
    substitute,
)

X, Y, Z = Var("x"), Var("y"), Var("z")
RULES = Rules()


@RULES.on(Add)
def add_zero(n: Add) -> Node | None:
    return n.a if n.b is index(0) else None


@RULES.on(Mul)
def times_two(n: Mul) -> Node | None:
    return Add(n.a, n.a) if n.b is index(2) else None


@RULES.on(Mul)
def times_zero(n: Mul) -> Node | None:
    return index(0) if n.b is index(0) else None


def test_rewriting_reaches_a_fixed_point() -> None:
    e = Add(Mul(Add(X, index(0)), index(2)), Mul(Y, index(0)))
    assert rewrite(e, RULES) is Add(X, X)


def test_nothing_to_do_returns_the_same_object() -> None:
    e = FloorDiv(Add(X, Y), index(3))
    assert rewrite(e, RULES) is e
    assert map_nodes(e, lambda n: None) is e


def test_rules_that_do_not_settle_are_stopped() -> None:
    endless = Rules()

    @endless.on(Add)
    def swap(n: Add) -> Node | None:
        return Add(n.b, n.a)

    with pytest.raises(RuntimeError, match="did not settle"):
        rewrite(Add(X, Y), endless, fuel=100)


def test_each_node_is_changed_once() -> None:
    seen: list[Node] = []
    shared = Add(X, Y)

    def change(n: Node) -> Node | None:
        seen.append(n)
        return Y if n is X else None

    assert map_nodes(Mul(shared, shared), change) is Mul(Add(Y, Y), Add(Y, Y))
    assert len(seen) == 4


def test_a_memo_stops_the_walk() -> None:
    inner = Add(X, Y)
    assert map_nodes(Mul(inner, Z), lambda n: None, memo={inner: Y}) is Mul(Y, Z)


def test_substitution_is_simultaneous() -> None:
    e = Add(X, Mul(Y, X))
    assert substitute(e, {X: Y, Y: X}) is Add(Y, Mul(X, Y))
    assert substitute(e, {Z: X}) is e
    assert substitute(e, {}) is e


def test_post_order_yields_children_first_and_once() -> None:
    shared = Add(X, Y)
    e = Mul(shared, Add(shared, X))
    order = list(post_order(e))
    assert order == [X, Y, shared, Add(shared, X), e]


def test_free_variables_come_in_order_of_use() -> None:
    assert free_vars(Add(Mul(Y, X), Add(Z, Y))) == [Y, X, Z]
    assert free_vars(Const(3, X.dtype)) == []
    assert [mentions(Add(Mul(Y, X), Y), v) for v in (X, Y, Z)] == [True, True, False]


def test_deep_chains_need_no_stack() -> None:
    e: Expr = X
    for _ in range(50_000):
        e = Add(e, Y)
    assert free_vars(e) == [X, Y]
    assert len(list(post_order(substitute(e, {Y: Z})))) == 50_002
    assert rewrite(e, RULES) is e
