"""Tensors, formulas and the operations behind them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from weft import te
from weft.ir import Expr, Var, const
from weft.support.dtypes import f32, i32
from weft.support.errors import TypeMismatch
from weft.te import Compute, OpClass, classify
from weft.te.classification import is_contraction, is_elementwise

A = te.placeholder((4, 6), f32, "A")
B = te.placeholder((6, 3), f32, "B")


def formula(t: te.Tensor) -> Compute:
    assert isinstance(t.op, Compute)
    return t.op


def test_a_placeholder() -> None:
    n = Var("n")
    t = te.placeholder((n, 4), i32, "T")
    assert (t.name, t.rank, t.dtype, t.shape[0]) == ("T", 2, i32, n)
    assert repr(t) == "Tensor(T: i32, rank 2)"


@pytest.mark.parametrize("use", [iter, sum])
def test_a_tensor_is_not_iterated_over(use: Callable[[Any], object]) -> None:
    with pytest.raises(TypeMismatch) as refused:
        use(te.placeholder((4,), f32, "T"))
    assert str(refused.value) == (
        "the tensor T can't be iterated over\n"
        "  hint: index it by the axes of a compute(); over a reduce_axis(), use sum_, max_, min_, any_ or prod"
    )


def test_a_formula_names_its_axes() -> None:
    assert [v.name for v in formula(te.compute((4, 6), lambda row, col: A[row, col])).axes] == ["row", "col"]
    assert [v.name for v in formula(te.compute((4, 6), lambda *i: A[i])).axes] == ["i0", "i1"]
    assert [v.name for v in formula(te.compute((4, 6), lambda i, *rest: A[i, rest[0]])).axes] == ["i", "rest0"]
    assert [v.name for v in formula(te.compute((4,), lambda i, scale=2: A[i, 0] * scale)).axes] == ["i"]


def test_a_formula_takes_an_index_for_each_dimension() -> None:
    with pytest.raises(TypeMismatch, match="the formula takes 1 indices, but the shape has 2 dimensions"):
        te.compute((4, 6), lambda i: A[i, i])


def test_a_formula_is_evaluated_when_it_is_needed() -> None:
    calls: list[int] = []

    def fn(i: Expr) -> Expr:
        calls.append(1)
        return A[i, 0]

    t = te.compute((4,), fn, dtype=f32)
    assert not calls
    assert formula(t).reads
    assert formula(t).values
    assert len(calls) == 1


def test_a_formula_may_be_a_number() -> None:
    t = te.compute((4,), lambda i: 1)
    assert t.dtype is f32
    assert formula(t).values == (const(1.0, f32),)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ((0,), "A has 2 dimensions, but 1 indices were given"),
        ((0, 0, 0), "A has 2 dimensions, but 3 indices were given"),
        ((const(0, i32), 0), "an index of A is of type i32, not i64"),
    ],
)
def test_wrong_indices(index: tuple[Expr, ...], message: str) -> None:
    with pytest.raises(TypeMismatch, match=message):
        _ = A[index]


def test_several_outputs_have_numbers() -> None:
    first, second = te.compute_many((4,), lambda i: (A[i, 0], A[i, 1] > 0.0), "pair")
    assert (first.name, second.name) == ("pair", "pair_1")
    assert str(second.dtype) == "bool"


def test_inputs_come_in_order_of_first_use() -> None:
    t = te.compute((4, 3), lambda i, j: B[i, j] + A[i, j] * B[j, i])
    assert t.op.inputs == (B, A)
    k = te.reduce_axis(6, "k")
    guarded = te.compute((4,), lambda i: te.sum_(A[i, k], [k], where=B[k, 0] > 0.0))
    assert guarded.op.inputs == (A, B)


def test_topological_order_of_a_diamond() -> None:
    a = te.compute((4, 6), lambda i, j: A[i, j] + 1.0, "a")
    b = te.compute((4, 6), lambda i, j: a[i, j] * 2.0, "b")
    c = te.compute((4, 6), lambda i, j: b[i, j] + a[i, j], "c")
    assert [op.name for op in te.topological([c, b])] == ["A", "a", "b", "c"]


def test_topological_order_of_a_long_chain() -> None:
    t = A
    for n in range(3000):
        t = _next(t, n)
    assert len(te.topological([t])) == 3001


def _next(t: te.Tensor, n: int) -> te.Tensor:
    return te.compute((4, 6), lambda i, j: t[i, j], f"t{n}")


K = te.reduce_axis(6, "k")
CLASSES = {
    "elementwise": (te.compute((4, 6), lambda i, j: A[i, j] + 1.0), OpClass.ELEMENTWISE),
    "constant": (te.compute((4, 6), lambda i, j: 1.0), OpClass.ELEMENTWISE),
    "broadcast": (te.compute((5, 4, 6), lambda b, i, j: A[i, j]), OpClass.BROADCAST),
    "row of a matrix": (te.compute((6,), lambda j: A[2, j]), OpClass.BROADCAST),
    "transpose": (te.compute((6, 4), lambda i, j: A[j, i]), OpClass.INJECTIVE),
    "reshape": (te.compute((24,), lambda i: A[i // 6, i % 6]), OpClass.INJECTIVE),
    "diagonal": (te.compute((4,), lambda i: A[i, i]), OpClass.INJECTIVE),
    "sum": (te.compute((4,), lambda i: te.sum_(A[i, K], [K])), OpClass.REDUCTION),
    "matmul": (te.compute((4, 3), lambda i, j: te.sum_(A[i, K] * B[K, j], [K])), OpClass.COMPLEX_OUT_FUSABLE),
    "scaled sum": (te.compute((4, 3), lambda i, j: te.sum_(A[i, K] * B[0, j], [K])), OpClass.REDUCTION),
    "maximum of products": (te.compute((4, 3), lambda i, j: te.max_(A[i, K] * B[K, j], [K])), OpClass.REDUCTION),
    "placeholder": (A, OpClass.OPAQUE),
}


@pytest.mark.parametrize("name", CLASSES)
def test_classes(name: str) -> None:
    tensor, wanted = CLASSES[name]
    assert classify(tensor.op) is wanted
    assert is_contraction(tensor.op) == (wanted is OpClass.COMPLEX_OUT_FUSABLE)


def test_elementwise_in_one_input() -> None:
    t = te.compute((4, 6), lambda i, j: A[i, j] + B[j, 0])
    assert is_elementwise(t.op, A)
    assert not is_elementwise(t.op, B)
    assert not is_elementwise(CLASSES["sum"][0].op, A)
