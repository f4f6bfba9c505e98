"""Whole programs against NumPy: loops, blocks, vectors, memory and calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.strategies import SIZE, programs
from tests.support.sampling import tried

from weft.codegen.interp import run
from weft.loop import Program, parse_program, print_program, verify

Array = npt.NDArray[Any]


def execute(text: str, *inputs: Array | int) -> None:
    """Verifies and runs the program *text*."""
    program = parse_program(text)
    verify(program)
    run(program, list(inputs))


def random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


MATMUL = """
def main(A: f32[n, k], B: f32[k, m], C: f32[n, m]):
    for i in range(0, n):
        for j in parallel(0, m):
            for r in range(0, k):
                with block("C", vi=spatial(n, i), vj=spatial(m, j), vr=reduce(k, r)):
                    with init():
                        C[vi, vj] = 0.0
                    C[vi, vj] = C[vi, vj] + A[vi, vr] * B[vr, vj]
"""


def test_matrix_product() -> None:
    a, b, c = random(5, 7), random(7, 3), np.empty((5, 3), np.float32)
    execute(MATMUL, a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-6)


def test_sums_are_rounded_in_the_type_and_order_of_the_program() -> None:
    a, b, c = random(1, 100), random(100, 1), np.empty((1, 1), np.float32)
    execute(MATMUL, a, b, c)
    total = np.float32(0)
    for x, y in zip(a[0], b[:, 0], strict=True):
        total = total + x * y
    assert c[0, 0] == total


def test_init_runs_where_all_reduce_axes_are_zero() -> None:
    c = np.full((2, 3), 100.0, np.float32)
    execute(
        """
def main(C: f32[2, 3]):
    for r in range(0, 3):
        for s in range(0, 2):
            for i in range(0, 2):
                for j in range(0, 3):
                    with block("C", vi=spatial(2, i), vj=spatial(3, j), vr=reduce(3, r), vs=reduce(2, 1 - s)):
                        with init():
                            C[vi, vj] = 0.0
                        C[vi, vj] = C[vi, vj] + 1.0
""",
        c,
    )
    # s counts down, so one of the six instances of every element comes before the init
    assert (c == 5.0).all()


def test_predicate_bounds_a_split_loop() -> None:
    x = np.zeros(10, np.int32)
    execute(
        """
def main(X: i32[n]):
    for o in range(0, (n + 3) // 4):
        for i in unrolled(0, 4):
            with block("X", v=spatial(n, o * 4 + i), where=(o * 4 + i < n)):
                X[v] = i32(v) + i32(1)
""",
        x,
    )
    assert x.tolist() == list(range(1, 11))


def test_masked_lanes_touch_no_memory() -> None:
    x, y = np.arange(13, dtype=np.float32), np.full(13, -1, np.float32)
    execute(
        """
def main(X: f32[n], Y: f32[n]):
    for o in range(0, (n + 7) // 8):
        i = let(ramp(o * 8, 1, 8))
        inside = let(i < broadcast(n, 8))
        Y.store(i, value=select(inside, X[i] * broadcast(2.0, 8), broadcast(0.0, 8)), mask=inside)
""",
        x,
        y,
    )
    assert y.tolist() == (x * 2).tolist()


def test_unselected_operands_touch_no_memory() -> None:
    y = np.zeros(4, np.float32)
    execute(
        """
def main(X: f32[2], Y: f32[4]):
    for i in range(0, 4):
        Y[i] = select(1 <= i and i < 3 and X[i - 1] < 9.0, X[i - 1], -1.0)
    j = let(ramp(0, 1, 4))
    k = let(broadcast(1, 4) <= j and j < broadcast(3, 4))
    Y[j] = Y[j] + select(k and X[j - broadcast(1, 4)] < broadcast(9.0, 4), X[j - broadcast(1, 4)], broadcast(0.0, 4))
""",
        np.array([5.0, 7.0], np.float32),
        y,
    )
    assert y.tolist() == [-1, 10, 14, -1]


def test_gather_and_scatter() -> None:
    x, i, y = random(6), np.array([5, 0, 3, 3], np.int64), np.zeros(6, np.float32)
    execute(
        """
def main(X: f32[6], I: i64[4], Y: f32[6]):
    j = let(I[ramp(0, 1, 4)])
    Y[j] = X[j]
""",
        x,
        i,
        y,
    )
    expected = np.zeros(6, np.float32)
    expected[i] = x[i]
    assert (y == expected).all()


def test_vector_elements() -> None:
    x, y = random(3, 4), np.zeros((3, 4), np.float32)
    execute(
        """
def main(X: f32x4[3], Y: f32x4[3]):
    t = alloc("register", f32x4[1])
    t[0] = broadcast(0.0, 4)
    for i in range(0, 3):
        t[0] = t[0] + X[i]
        Y.store(i, value=t[0], mask=ramp(0, 1, 4) < broadcast(2, 4))
""",
        x,
        y,
    )
    assert (y == np.cumsum(x, axis=0, dtype=np.float32) * [1, 1, 0, 0]).all()


def test_vectors_of_vector_elements() -> None:
    x, y = random(5, 2), np.zeros((5, 2), np.float32)
    execute(
        """
def main(X: f32x2[5], Y: f32x2[5]):
    i = let(ramp(0, 2, 4))
    inside = let(ramp(0, 1, 8) < broadcast(5, 8))
    Y.store(i, value=select(inside, X[i], broadcast(0.0, 8)), mask=inside)
""",
        x,
        y,
    )
    expected = np.zeros((5, 2), np.float32)
    expected[[0, 2]] = x[[0, 2]]
    expected[4, 0] = x[4, 0]
    assert (y == expected).all()


def test_fresh_memory_is_not_a_number() -> None:
    y, k = np.zeros(2, np.float32), np.zeros(1, np.int32)
    execute(
        """
def main(Y: f32[2], K: i32[1]):
    for i in range(0, 2):
        t = alloc("local", f32[2])
        n = alloc("local", i32[1])
        t[i] = 1.0
        Y[i] = t[0] + t[1]
        K[0] = n[0]
""",
        y,
        k,
    )
    assert np.isnan(y).all()
    assert k[0] == -0x5A5A5A5B


def test_views_with_strides_and_other_types() -> None:
    x, y = np.arange(12, dtype=np.float32), np.zeros((3, 4), np.float32)
    execute(
        """
def main(X: f32[12], Y: f32[3, 4]):
    t = view(X, 0, f32[3, 4], strides=(1, 3))
    for i in range(0, 3):
        for j in range(0, 4):
            Y[i, j] = t[i, j]
    b = view(X, 1, i32[1])
    b[0] = i32(0x40000000)
""",
        x,
        y,
    )
    assert (y == np.arange(12).reshape(4, 3).T).all()
    assert x[1] == 2.0


def test_calls_see_memory_from_an_address_on() -> None:
    x = np.zeros((4, 3), np.float32)
    execute(
        """
def main(X: f32[4, 3]):
    for i in range(0, 2):
        fill(X.at(2 * i, 1), 2 * i, 2.5)

def fill(Y: f32[k], k: i64, v: f32):
    if 0 < k:
        for i in range(0, k):
            Y[i] = v
""",
        x,
    )
    expected = np.zeros(12, np.float32)
    expected[7:9] = 2.5
    assert (x.reshape(-1) == expected).all()


def test_intrinsics_come_from_a_library() -> None:
    x = np.zeros(4, np.float32)

    def fill(memory: tuple[Array, int], value: np.float32) -> None:
        array, offset = memory
        array[offset:] = value

    program = parse_program('def main(X: f32[4]):\n    call("target.fill", X.at(1), 3.0)\n')
    run(program, {"X": x}, library={"target.fill": fill})
    assert x.tolist() == [0, 3, 3, 3]


def test_while_and_let() -> None:
    x = np.array([27], np.int64)
    execute(
        """
def main(X: i64[1]):
    steps = alloc("local", i64[1])
    steps[0] = 0
    while X[0] != 1:
        now = let(X[0])
        X[0] = select(now % 2 == 0, now // 2, 3 * now + 1)
        steps[0] = steps[0] + 1
    X[0] = steps[0]
""",
        x,
    )
    assert x[0] == 111


def test_a_loaded_value_is_not_kept_across_a_store() -> None:
    x = np.zeros(4, np.float32)
    execute(
        """
def main(X: f32[4]):
    if X[0] < 1.0:
        X[0] = X[0] + 1.0
        X[1] = X[0]
        for i in range(0, 3):
            X[0] = X[0] * 2.0
            X[2] = X[0]
""",
        x,
    )
    assert x.tolist() == [8, 1, 8, 0]


def test_more_loops_than_python_can_nest() -> None:
    depth = 40
    loops = "".join([f"{'    ' * (d + 1)}for i{d} in range(0, {2 if d in (0, 39) else 1}):\n" for d in range(depth)])
    x = np.zeros(4, np.int64)
    execute(f"def main(X: i64[4]):\n{loops}{'    ' * (depth + 1)}X[i0 * 2 + i39] = i0 + i39\n", x)
    assert x.tolist() == [0, 1, 1, 2]


def test_arrays_that_are_not_contiguous_are_changed_in_place() -> None:
    x = np.zeros((4, 6), np.float32)
    execute("def main(X: f32[6, 4]):\n    X[5, 1] = 1.0\n    f(X.at(2, 3))\n\ndef f(Y: f32[2]):\n    Y[1] = 2.0\n", x.T)
    assert x[1, 5] == 1.0
    assert x[0, 3] == 2.0
    assert x.sum() == 3.0


def test_strided_parameters() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    text = 'def main(X: buffer("global", f32[2, 3], strides=(8, 1))):\n    v = view(X, 8, f32[3])\n    v[2] = X[0, 1]\n'
    execute(text, x)
    assert x.tolist() == [[0, 1, 2], [3, 4, 1]]


def test_a_function_other_than_the_entry() -> None:
    x = np.zeros(1, np.float32)
    program = parse_program("def main():\n    pass\n\ndef other(X: f32[1]):\n    X[0] = 1.0\n")
    run(program, [x], function="other")
    assert x[0] == 1.0


@pytest.mark.parametrize("n", [0, 1, 5])
def test_symbolic_sizes_are_found_from_shapes(n: int) -> None:
    x, y = random(n, 2), np.zeros(n, np.float32)
    program = parse_program(
        "def main(X: f32[n, 2], Y: f32[n], n: i64):\n    for i in range(0, n):\n        Y[i] = X[i, 1]\n"
    )
    run(program, {"X": x, "Y": y})
    assert (y == x[:, 1]).all()


@tried(13, 50, programs())
def test_a_program_that_was_read_back_computes_the_same(program: Program) -> None:
    verify(program)
    results = []
    for p in (program, parse_program(print_program(program))):
        arrays = [random(SIZE, SIZE), random(SIZE, seed=1), np.arange(SIZE, dtype=np.int32)]
        run(p, arrays)
        results.append(arrays)
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)
