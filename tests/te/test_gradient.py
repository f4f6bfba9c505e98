"""Gradients of operators, against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from tests.te.differences import check_gradient
from tests.te.running import Array, results

from weft import te
from weft.driver.function import build_function
from weft.ir import Expr, Var, all_of, apply, cast, index, maximum, select
from weft.support.dtypes import DType, f16, f32, f64, i64
from weft.support.errors import GradientError, TypeMismatch
from weft.te import Compute, Tensor
from weft.te.classification import is_contraction


def given(*shape: int, name: str = "X") -> Tensor:
    return te.placeholder(shape, f64, name)


def values(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape)


def reduction_of(t: Tensor) -> te.Reduction | None:
    assert isinstance(t.op, Compute)
    return t.op.reduction


def matmul(a: Tensor, b: Tensor) -> Tensor:
    k = te.reduce_axis(a.shape[1], "k")
    return te.compute((a.shape[0], b.shape[1]), lambda i, j: te.sum_(a[i, k] * b[k, j], [k]), "C")


def test_matmul_is_two_matmuls(golden: Callable[[str], None]) -> None:
    a, b = given(4, 6, name="A"), given(6, 3, name="B")
    da, db = check_gradient(matmul(a, b), [a, b], [values(4, 6), values(6, 3, seed=1)])
    h = te.placeholder((4, 3), f64, "H")
    assert is_contraction(da.op)
    assert is_contraction(db.op)
    golden(str(te.to_program([a, b, h], te.gradient(matmul(a, b), [a, b], h))))


def conv2d(x: Tensor, w: Tensor, stride: int, pad: int, dilation: int = 1) -> Tensor:
    """Of one image, by way of a padded copy."""
    (c, h, v), (o, _, kh, kw) = ([int(s.value) for s in t.shape] for t in (x, w))  # type: ignore[attr-defined]

    def padded(k: Expr, i: Expr, j: Expr) -> Expr:
        inside = all_of([i >= pad, i < h + pad, j >= pad, j < v + pad])
        return select(inside, x[k, i - pad, j - pad], 0.0)

    p = te.compute((c, h + 2 * pad, v + 2 * pad), padded, "P") if pad else x
    rc, ri, rj = te.reduce_axis(c, "rc"), te.reduce_axis(kh, "ri"), te.reduce_axis(kw, "rj")
    shape = (o, *[(s + 2 * pad - dilation * (k - 1) - 1) // stride + 1 for s, k in ((h, kh), (v, kw))])

    def fn(q: Expr, i: Expr, j: Expr) -> te.Reduction:
        at = (rc, i * stride + ri * dilation, j * stride + rj * dilation)
        return te.sum_(p[at] * w[q, rc, ri, rj], [rc, ri, rj])

    return te.compute(shape, fn, "Y")


@pytest.mark.parametrize(
    ("stride", "pad", "dilation"), [(1, 0, 1), (1, 1, 1), (2, 1, 1), (3, 2, 1), (1, 2, 2), (2, 0, 2)]
)
def test_conv2d(stride: int, pad: int, dilation: int) -> None:
    x, w = given(2, 7, 6), given(3, 2, 3, 2, name="W")
    check_gradient(conv2d(x, w, stride, pad, dilation), [x, w], [values(2, 7, 6), values(3, 2, 3, 2, seed=1)])


def test_the_gradient_of_a_convolution_runs_over_the_window() -> None:
    """Not over the image: of the output's position and the window's, the smaller stays free."""
    x, w = given(2, 30, 30), given(3, 2, 3, 3, name="W")
    dx, dw = te.gradient(conv2d(x, w, 2, 0), [x, w])
    of_x, of_w = reduction_of(dx), reduction_of(dw)
    assert of_x is not None
    assert of_w is not None
    assert sorted(int(a.extent.value) for a in of_x.axes) == [3, 3, 3]  # type: ignore[attr-defined]
    assert [int(a.extent.value) for a in of_w.axes] == [14, 14]  # type: ignore[attr-defined]


@pytest.mark.parametrize("reducer", [te.sum_, te.max_, te.min_], ids=lambda r: r.name)
@pytest.mark.parametrize(("size", "stride"), [(2, 2), (3, 2), (3, 1)])
def test_pooling(reducer: te.Reducer, size: int, stride: int) -> None:
    x = given(7, 9)
    a, b = te.reduce_axis(size, "a"), te.reduce_axis(size, "b")
    shape = tuple((s - size) // stride + 1 for s in (7, 9))
    y = te.compute(shape, lambda i, j: reducer(x[i * stride + a, j * stride + b], [a, b]), "Y")
    check_gradient(y, [x], [np.random.default_rng(0).permutation(63).reshape(7, 9) / 10])


def test_pooling_without_overlap_sums_nothing() -> None:
    x, a = given(8), te.reduce_axis(2, "a")
    (dx,) = te.gradient(te.compute((4,), lambda i: te.sum_(x[i * 2 + a] * 0.5, [a])), [x])
    assert reduction_of(dx) is None


def test_of_equal_maxima_the_first_has_it_all() -> None:
    x, k = te.placeholder((2, 4), f64, "X"), te.reduce_axis(4, "k")
    y = te.compute((2,), lambda i: te.max_(x[i, k], [k]))
    found = results([x], te.gradient(y, [x]), np.array([[1.0, 3, 3, 2], [0, 0, 0, 0]]))[0]
    np.testing.assert_array_equal(found, [[0, 1, 0, 0], [1, 0, 0, 0]])


def softmax(x: Tensor) -> Tensor:
    n, m = x.shape
    k, q = te.reduce_axis(m, "k"), te.reduce_axis(m, "q")
    most = te.compute((n,), lambda i: te.max_(x[i, k], [k]), "most")
    e = te.compute((n, m), lambda i, j: apply("exp", x[i, j] - most[i]), "e")
    total = te.compute((n,), lambda i: te.sum_(e[i, q], [q]), "total")
    return te.compute((n, m), lambda i, j: e[i, j] / total[i], "softmax")


def test_softmax() -> None:
    x = given(3, 5)
    check_gradient(softmax(x), [x], [values(3, 5)])


def mean_and_variance(x: Tensor) -> tuple[Tensor, Tensor]:
    """Of each row."""
    n, m = x.shape
    k, q = te.reduce_axis(m, "k"), te.reduce_axis(m, "q")
    size = cast(m, x.dtype)
    total = te.compute((n,), lambda i: te.sum_(x[i, k], [k]), "total")
    mean = te.compute((n,), lambda i: total[i] / size, "mean")
    apart = te.compute((n,), lambda i: te.sum_((x[i, q] - mean[i]) * (x[i, q] - mean[i]), [q]), "apart")
    return mean, te.compute((n,), lambda i: apart[i] / size, "variance")


def test_layer_norm() -> None:
    x, g, b = given(3, 5), given(5, name="G"), given(5, name="B")
    mean, var = mean_and_variance(x)

    def fn(i: Expr, j: Expr) -> Expr:
        return (x[i, j] - mean[i]) * apply("rsqrt", var[i] + 1e-3) * g[j] + b[j]

    check_gradient(te.compute((3, 5), fn, "Y"), [x, g, b], [values(3, 5), values(5, seed=1), values(5, seed=2)])


def test_batch_norm_in_training() -> None:
    x = given(2, 3, 4)  # batch, channel, place
    rows = te.compute((3, 8), lambda c, k: x[k // 4, c, k % 4], "rows")
    mean, var = mean_and_variance(rows)
    y = te.compute((2, 3, 4), lambda b, c, k: (x[b, c, k] - mean[c]) / apply("sqrt", var[c] + 1e-3), "Y")
    check_gradient(y, [x], [values(2, 3, 4)])


@pytest.mark.parametrize("exact", [True, False], ids=["erf", "tanh"])
def test_gelu(exact: bool) -> None:
    x = given(9)

    def fn(i: Expr) -> Expr:
        v = x[i]
        if exact:
            return v * 0.5 * (1.0 + apply("erf", v * 0.7071067811865476))
        return v * 0.5 * (1.0 + apply("tanh", (v + v * v * v * 0.044715) * 0.7978845608028654))

    check_gradient(te.compute((9,), fn), [x], [values(9)])


def test_embedding() -> None:
    table, t = given(5, 3), te.placeholder((4,), i64, "T")
    y = te.compute((4, 3), lambda i, j: table[t[i], j], "Y")
    check_gradient(y, [table], [values(5, 3)], [(t, np.array([1, 4, 1, 0]))])


def test_a_gather_along_the_inner_axis() -> None:
    x, t = given(3, 5), te.placeholder((3, 2), i64, "T")
    y = te.compute((3, 2), lambda i, j: x[i, t[i, j]] * x[i, 0], "Y")
    check_gradient(y, [x], [values(3, 5)], [(t, np.array([[1, 1], [0, 4], [2, 3]]))])


MOVEMENTS: dict[str, Callable[[Tensor], Tensor]] = {
    "reshape": lambda x: te.compute((3, 8), lambda i, j: x[(i * 8 + j) // 6, (i * 8 + j) % 6]),
    "flatten": lambda x: te.compute((24,), lambda i: x[i // 6, i % 6]),
    "unflatten and move": lambda x: te.compute((3, 2, 4), lambda a, b, c: x[c, a * 2 + b]),
    "transpose": lambda x: te.compute((6, 4), lambda i, j: x[j, i]),
    "slice": lambda x: te.compute((2, 3), lambda i, j: x[i + 1, j * 2 + 1]),
    "reverse": lambda x: te.compute((4, 6), lambda i, j: x[3 - i, 5 - j]),
    "reverse every other": lambda x: te.compute((4, 3), lambda i, j: x[i, 5 - j * 2]),
    "pad": lambda x: te.compute((6, 6), lambda i, j: select(all_of([i > 0, i < 5]), x[i - 1, j], 0.0)),
    "upsample": lambda x: te.compute((8, 18), lambda i, j: x[i // 2, j // 3]),
    "tile": lambda x: te.compute((9, 6), lambda i, j: x[i % 4, j]),
    "broadcast": lambda x: te.compute((3, 4, 6), lambda b, i, j: x[i, j]),
    "row": lambda x: te.compute((6,), lambda j: x[2, j]),
    "diagonal": lambda x: te.compute((4,), lambda i: x[i, i]),
    "skewed": lambda x: te.compute((3, 4), lambda i, j: x[i, i + j]),
    "twice": lambda x: te.compute((3, 6), lambda i, j: x[i, j] * x[i + 1, j]),
    "space to depth": lambda x: te.compute((4, 2, 3), lambda c, i, j: x[i * 2 + c // 2, j * 2 + c % 2]),
    "depth to space": lambda x: te.compute((12, 2), lambda i, j: x[i % 2 * 2 + j, i // 2]),
    "not invertible": lambda x: te.compute((4, 6), lambda i, j: x[i * j % 4, (i + j) * 7 % 6]),
}


@pytest.mark.parametrize("name", MOVEMENTS)
def test_movement(name: str) -> None:
    x = given(4, 6)
    moved = MOVEMENTS[name](x)
    scaled = te.compute(moved.shape, lambda *i: moved[i] * moved[i], "Y")
    check_gradient(scaled, [x], [values(4, 6)])


INVERTIBLE = [
    "reshape",
    "flatten",
    "unflatten and move",
    "transpose",
    "slice",
    "reverse",
    "reverse every other",
    "pad",
    "diagonal",
    "space to depth",
    "depth to space",
    "twice",
]


@pytest.mark.parametrize("name", INVERTIBLE)
def test_an_invertible_movement_sums_nothing(name: str) -> None:
    x = given(4, 6)
    (dx,) = te.gradient(MOVEMENTS[name](x), [x])
    assert reduction_of(dx) is None


def test_concatenation() -> None:
    a, b = given(2, 3, name="A"), given(4, 3, name="B")
    y = te.compute((6, 3), lambda i, j: select(i < 2, a[i, j], b[i - 2, j]) * 2.0, "Y")
    da, db = check_gradient(y, [a, b], [values(2, 3), values(4, 3, seed=1)])
    assert reduction_of(da) is None
    assert reduction_of(db) is None


def test_broadcast_addition() -> None:
    x, row, column = given(4, 3), given(3, name="R"), given(4, 1, name="C")
    y = te.compute((4, 3), lambda i, j: x[i, j] * row[j] + column[i, 0], "Y")
    check_gradient(y, [x, row, column], [values(4, 3), values(3, seed=1), values(4, 1, seed=2)])


def test_symbolic_sizes() -> None:
    n, m = Var("n"), Var("m")
    x, w = te.placeholder((n, m), f64, "X"), te.placeholder((m, 4), f64, "W")
    flat = te.compute((n * 4,), lambda i: maximum(matmul(x, w)[i // 4, i % 4], 0.0), "flat")
    check_gradient(flat, [x, w], [values(3, 5), values(5, 4, seed=1)], n=3, m=5)


def test_symbolic_reshape() -> None:
    n, m = Var("n"), Var("m")
    x = te.placeholder((n, m), f64, "X")
    flat = te.compute((n * m,), lambda i: x[i // m, i % m] * 2.0, "flat")
    back = te.compute((m, n), lambda i, j: flat[i * n + j], "back")
    (dx,) = check_gradient(back, [x], [values(3, 5)], n=3, m=5)
    assert reduction_of(dx) is None


def test_through_several_ways() -> None:
    """A tensor that is read in two places sums what both contribute."""
    x = given(5)
    a = te.compute((5,), lambda i: x[i] * x[i], "A")
    k = te.reduce_axis(5, "k")
    total = te.compute((1,), lambda i: te.sum_(a[k] * x[4 - k], [k]), "total")
    y = te.compute((5,), lambda i: a[i] * total[0] + x[i], "Y")
    check_gradient(y, [x], [values(5)])


def test_by_an_intermediate_result_as_well() -> None:
    x = given(4)
    a = te.compute((4,), lambda i: x[i] * x[i], "A")
    y = te.compute((4,), lambda i: a[i] * a[i], "Y")
    da, dx, dy = te.gradient(y, [a, x, y])
    v = values(4)
    found = results([x], [da, dx, dy], v)
    for got, wanted in zip(found, (2 * v**2, 4 * v**3, np.ones(4)), strict=True):
        np.testing.assert_allclose(got, wanted)


PRODUCTS = te.reducer(lambda a, b: (a[0] * b[0],), te.prod.identity, "product")
LOGSUMEXP = te.reducer(
    lambda a, b: (maximum(a[0], b[0]), a[1] * _scale(a, b) + b[1] * _scale(b, a)),
    lambda t: (te.lowest(t[0]), te.sum_.identity(t[1:])[0]),
    "logsumexp",
)


def _scale(a: Sequence[Expr], b: Sequence[Expr]) -> Expr:
    return select(b[0] <= a[0], 1.0 + 0.0 * b[1], apply("exp", a[0] - b[0]))


@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("reducer", [te.prod, PRODUCTS], ids=lambda r: r.name)
def test_products_even_of_zeros(reducer: te.Reducer, zero: bool) -> None:
    x, k = given(3, 4), te.reduce_axis(4, "k")
    v = values(3, 4)
    v[0, 1] = 0.0 if zero else v[0, 1]
    check_gradient(te.compute((3,), lambda i: reducer(x[i, k], [k])), [x], [v])


def test_a_tuple_valued_reducer() -> None:
    """The largest, and the sum of exponentials relative to it."""
    x, k = given(3, 4), te.reduce_axis(4, "k")
    top, total = te.compute_many((3,), lambda i: LOGSUMEXP((x[i, k], 1.0 + 0.0 * x[i, k]), [k]), "online")
    y = te.compute((3,), lambda i: top[i] + apply("log", total[i]), "Y")
    check_gradient(y, [x], [values(3, 4)])


def test_the_value_of_argmax() -> None:
    x, k = given(3, 4), te.reduce_axis(4, "k")
    at, top = te.compute_many((3,), lambda i: te.argmax((k, x[i, k]), [k]), "top")
    y = te.compute((3,), lambda i: top[i] * cast(at[i], f64), "Y")
    check_gradient(y, [x], [values(3, 4)])


def test_predicated_reductions() -> None:
    x, k = given(4, 4), te.reduce_axis(4, "k")
    y = te.compute((4,), lambda i: te.sum_(x[i, k] * x[k, i], [k], where=k <= i), "Y")
    z = te.compute((4,), lambda i: te.max_(x[i, k], [k], where=k <= i), "Z")
    check_gradient(te.compute((4,), lambda i: y[i] * z[i]), [x], [values(4, 4)])


def test_second_order() -> None:
    x = given(4)
    y = te.compute((4,), lambda i: apply("exp", x[i]) * x[3 - i], "Y")
    (dx,) = te.gradient(y, [x], te.compute((4,), lambda i: cast(i + 1, f64), "weights"))
    check_gradient(dx, [x], [values(4)])


@pytest.mark.parametrize("of", ["matmul", "conv2d", "softmax", "max pool", "prod"])
def test_second_order_of(of: str) -> None:
    x, w = given(2, 5, 4), given(3, 2, 2, 2, name="W")
    k = te.reduce_axis(4, "k")
    flat = te.compute((10, 4), lambda i, j: x[i // 5, i % 5, j], "flat")
    y = {
        "matmul": lambda: matmul(flat, te.compute((4, 3), lambda i, j: w[j, i // 2, i % 2, 0])),
        "conv2d": lambda: conv2d(x, w, 2, 1),
        "softmax": lambda: softmax(flat),
        "max pool": lambda: te.compute((10,), lambda i: te.max_(flat[i, k] * flat[i, k], [k])),
        "prod": lambda: te.compute((10,), lambda i: te.prod(flat[i, k], [k])),
    }[of]()
    weights = te.compute(y.shape, lambda *i: apply("sin", cast(sum(i, index(1)), f64)), "weights")
    inputs, arrays = (
        ([x, w], [values(2, 5, 4), values(3, 2, 2, 2, seed=1)])
        if of in ("matmul", "conv2d")
        else ([x], [values(2, 5, 4)])
    )
    first = te.gradient(y, inputs, weights)
    check_gradient(first[0], inputs, arrays, tolerance=1e-5)


def test_what_nothing_depends_on_is_zero() -> None:
    x, other = given(3), given(2, 2, name="other")
    y = te.compute((3,), lambda i: apply("floor", x[i]), "Y")
    dx, d_other = te.gradient(y, [x, other])
    found = results([x, other], [dx, d_other], values(3), values(2, 2))
    assert not found[0].any()
    assert not found[1].any()


@pytest.mark.parametrize("dtype", [f16, f32], ids=str)
def test_narrow_types_are_summed_in_wide_ones(dtype: DType) -> None:
    x, b = te.placeholder((3000, 2), dtype, "X"), te.placeholder((2,), dtype, "B")
    y = te.compute((3000, 2), lambda i, j: x[i, j] + b[j], "Y")
    found = results([x, b], te.gradient(y, [b]), np.zeros((3000, 2), dtype.numpy), np.zeros(2, dtype.numpy))[0]
    np.testing.assert_array_equal(found, [3000, 3000])  # f16 counts to 2048


def test_compiled() -> None:
    x, w = te.placeholder((2, 9, 8), f32, "X"), te.placeholder((3, 2, 3, 3), f32, "W")
    y = conv2d(x, w, 2, 1)
    gradients = te.gradient(te.compute(y.shape, lambda *i: maximum(y[i], 0.0) * y[i]), [x, w])
    a, b = values(2, 9, 8).astype(np.float32), values(3, 2, 3, 3, seed=1).astype(np.float32)
    wanted = results([x, w], gradients, a, b)
    found = [np.empty_like(a), np.empty_like(b)]
    build_function(te.to_program([x, w], gradients))(a, b, *found)
    for got, reference in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, reference, rtol=1e-4, atol=1e-5)


def test_refusals() -> None:
    x, t = given(3), te.placeholder((3,), i64, "T")
    y = te.compute((3,), lambda i: x[t[i]])
    with pytest.raises(GradientError, match="T is of type i64, which has no gradient"):
        te.gradient(y, [t])
    with pytest.raises(TypeMismatch, match="the head H has not the shape and the type of y"):
        te.gradient(y, [x], te.placeholder((4,), f64, "H"))
    with pytest.raises(TypeMismatch, match="the head H has not the shape and the type of y"):
        te.gradient(y, [x], te.placeholder((3,), f32, "H"))
