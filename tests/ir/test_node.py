"""Interning: one object for one meaning, for as long as it lives, whoever builds it."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from weft.ir import (
    Add,
    Binary,
    Broadcast,
    Cast,
    Const,
    Expr,
    Mul,
    Node,
    Ramp,
    Select,
    Var,
    const,
    eq,
    index,
    node,
    select,
)
from weft.ir.expr import node as nodes
from weft.support.dtypes import bool_, f32, i32, i64
from weft.support.errors import TypeMismatch

X, Y = Var("x"), Var("y")


def test_equal_nodes_are_one_object() -> None:
    assert Add(X, Mul(Y, index(2))) is Add(X, Mul(Y, index(2)))
    assert Add(X, Y) is not Add(Y, X)


def test_constants_are_known_by_type_and_bits() -> None:
    same_in_python = [index(1), const(1, i32), const(1.0, f32), const(True, bool_)]
    assert len(set(same_in_python)) == 4
    assert const(0.0, f32) is not const(-0.0, f32)
    assert const(float("nan"), f32) is const(float("nan"), f32)


def test_variables_are_known_by_identity() -> None:
    assert Var("x") is not X
    assert Add(Var("x"), Y) is not Add(X, Y)


@pytest.mark.parametrize(
    "choose",
    [
        lambda: min(X, Y),
        lambda: max(index(1), X),
        lambda: X if X < Y else Y,
        lambda: X < Y and Y < X,
        lambda: X < Y or Y < X,
        lambda: not X,
        lambda: index(0) < X < Y,
        lambda: sorted([X, Y]),
        lambda: any([X < Y]),
    ],
)
def test_python_cannot_choose_by_an_expression(choose: Callable[[], object]) -> None:
    with pytest.raises(TypeMismatch) as refused:
        choose()
    assert isinstance(refused.value, TypeError)
    assert str(refused.value) == (
        "an expression has no truth value before the program runs\n"
        "  hint: Python decides if, and, or, not, min, max and a < b < c while the formula is built; write select(c, a, b), "
        "minimum(a, b), maximum(a, b), a & b, a | b, ~a or all_of([...]), and test for an absent expression by `is None`"
    )


@pytest.mark.parametrize("use", [iter, len, lambda e: X in e, int, float])
def test_an_expression_is_no_python_container_or_number(use: Callable[[Any], object]) -> None:
    with pytest.raises(TypeError):
        use(X + Y)


def test_select_refuses_what_python_has_compared() -> None:
    with pytest.raises(TypeMismatch) as refused:
        select(X == Y, X, Y)  # type: ignore[arg-type]
    assert str(refused.value) == (
        "the condition of select is False, not an expression\n  hint: write eq(a, b) or ne(a, b)"
    )


def test_nodes_cannot_be_changed() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        Add(X, Y).a = Y  # type: ignore[misc]


def test_children_and_rebuild() -> None:
    e = Select(eq(X, Y), X, Y)
    assert e.children() == (eq(X, Y), X, Y)
    assert e.rebuild(e.children()) is e
    assert e.rebuild([eq(X, Y), Y, X]) is Select(eq(X, Y), Y, X)
    assert Cast(X, f32).rebuild([Y]) is Cast(Y, f32)
    assert Ramp(X, Y, 4).rebuild([Y, X]) is Ramp(Y, X, 4)


def test_dead_nodes_are_forgotten() -> None:
    gc.collect()
    before = len(nodes._INTERNED)
    e: Expr = Add(Add(X, index(123_457)), Y)
    assert len(nodes._INTERNED) == before + 3
    del e
    gc.collect()
    assert len(nodes._INTERNED) == before


def test_a_deep_chain_is_built_and_dropped() -> None:
    before = len(nodes._INTERNED)
    e: Expr = X
    for _ in range(100_000):
        e = Add(e, Y)
    assert len(nodes._INTERNED) >= before + 100_000
    del e
    gc.collect()
    assert len(nodes._INTERNED) <= before


def test_copies_are_the_node_itself() -> None:
    e = Add(index(1), index(2))
    assert pickle.loads(pickle.dumps(e)) is e
    assert copy.copy(e) is e


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("frequent_switches")
def test_threads_build_the_same_nodes() -> None:
    made: list[list[Expr]] = []

    def build() -> None:
        for _ in range(3):
            [Add(X, index(k)) for k in range(50_000, 50_400)]  # built and dropped again, to race with the others
        made.append([Add(X, index(k)) for k in range(50_000, 52_000)])

    threads = [threading.Thread(target=build) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(a is b for other in made[1:] for a, b in zip(made[0], other, strict=True))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Add(X, const(1, i32)), "takes two operands of one type, not i64 and i32"),
        (lambda: Const(1.0, i64), "the constant 1.0 is not of type i64"),
        (lambda: Const(1, f32), "the constant 1 is not of type f32"),
        (lambda: Broadcast(Broadcast(X, 4), 4), "only a scalar can be broadcast"),
        (lambda: Cast(Broadcast(X, 4), f32), "a cast keeps the lanes"),
        (lambda: Select(X, X, Y), "select takes a bool"),
    ],
)
def test_invariants(build: object, message: str) -> None:
    assert callable(build)
    with pytest.raises(TypeMismatch, match=message):
        build()


class Bag:
    """A class that does not say how it is compared."""


HINTS = (Bag, Binary)  # named by annotations below


def make(field: str, hint: str) -> type[Node]:
    """Declares a node class with one field."""
    scope: dict[str, Any] = {"__name__": __name__, "Node": Node}
    exec(f"class Odd(Node):\n    {field}: {hint}", scope)  # with this module's own `annotations` from the future
    odd: Any = scope["Odd"]
    made: type[Node] = node(odd)
    return made


@pytest.mark.parametrize(
    "hint",
    [
        "Bag",
        "list[Expr]",
        "tuple[Bag, ...]",
        "Expr | int",
        "tuple[Expr, int]",
        "tuple[tuple[Expr, ...], ...]",
        "Bag | None",
    ],
)
def test_a_field_that_cannot_be_classified_is_refused(hint: str) -> None:
    with pytest.raises(TypeError, match=r"the field Odd\.x: .* is neither a node, .* nor a leaf: plain values"):
        make("x", hint)


def test_a_field_of_an_unknown_class_is_refused() -> None:
    with pytest.raises(TypeError) as refused:
        make("x", "Nowhere")
    assert str(refused.value) == (
        "a field of the node class Odd names Nowhere, which is not defined where the class is made: "
        "import it there, not under TYPE_CHECKING"
    )


@pytest.mark.parametrize(
    ("hint", "given", "children"),
    [
        ("Const", index(1), (index(1),)),
        ("Binary", X < Y, (X < Y,)),
        ("Add | None", None, ()),
        ("Add | None", Add(Y, X), (Add(Y, X),)),
        ("tuple[Binary, ...]", (X < Y,), (X < Y,)),
        ("Var", X, ()),
        ("tuple[int | str, ...]", (1, "a"), ()),
        ("Odd | None", None, ()),
        ("tuple[Var, ...]", (X, Y), ()),
    ],
)
def test_any_class_of_nodes_is_a_field(hint: str, given: object, children: tuple[Node, ...]) -> None:
    made = make("x", hint)(given)  # type: ignore[call-arg]
    assert made.children() == children
    assert made.rebuild(children) is made
