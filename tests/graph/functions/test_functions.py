"""Models as functions: recursion, closures and functions as values give the graphs that they mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

import weft
from weft.graph import Graph
from weft.graph.functions import inline_functions, lift_lambdas, parse_functions, print_functions
from weft.support.errors import ModelError, ParseError

Array = np.ndarray[Any, Any]

W: Final[Array] = np.linspace(0, 1, 8, dtype=np.float32)
X: Final[Array] = np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32)


def collatz(n: int) -> int:
    return 0 if n == 1 else 1 + collatz(n // 2 if n % 2 == 0 else 3 * n + 1)


REPEAT: Final = """
def repeat(f, k, x):
    return x if k == 0 else repeat(f, k - 1, f(x))
"""

PROGRAMS: Final[dict[str, tuple[str, Callable[..., Any]]]] = {
    "functions as values": (
        REPEAT + "def main(x: f32[3, 8], k: i64[()]):\n    return repeat(tanh, 2, x) * cast(k, dtype=f32)",
        lambda x, k: np.tanh(np.tanh(x)) * np.float32(k),
    ),
    "closures": (
        REPEAT + "def main(x: f32[3, 8], k: i64[()]):\n    s = x + w\n    return repeat(lambda v: v + s, 3, x)",
        lambda x, k: x + 3 * (x + W),
    ),
    "closures of closures": (
        """
def compose(f, g):
    return lambda v: f(g(v))

def main(x: f32[3, 8], k: i64[()]):
    twice = lambda f: compose(f, f)
    return twice(twice(lambda v: v + w))(x)
""",
        lambda x, k: x + 4 * W,
    ),
    "known recursion that is not at the end": (
        """
def sum_of(k, x):
    return x if k == 0 else x * k + sum_of(k - 1, x)

def main(x: f32[3, 8], k: i64[()]):
    return sum_of(4, x)
""",
        lambda x, k: 11 * x,
    ),
    "recursion that a run ends": (
        """
def halved(n, x):
    return x if n <= 0 else halved(n - 1, x * 0.5)

def main(x: f32[3, 8], k: i64[()]):
    return halved(k, x), halved(2, x)
""",
        lambda x, k: (x * np.float32(0.5) ** max(k, 0), x / 4),
    ),
    "a loop with functions and numbers that stay": (
        """
def iterate(f, step, n, x):
    m = n - step
    n = m
    return iterate(f, step, n, f(x)) if n > 0 else (x, n)

def main(x: f32[3, 8], k: i64[()]):
    y, left = iterate(lambda v: v + w, 2, k, x)
    return y, left
""",
        lambda x, k: (x + W * max((k - 1) // 2, 0), k - 2 * max((k + 1) // 2, 1)),
    ),
    "a recursive function inside of a function": (
        """
def main(x: f32[3, 8], k: i64[()]):
    s = x * 0.5
    def power(j, v):
        return v if j == 0 else power(j - 1, v * s)
    return power(k, x), power(2, x)
""",
        lambda x, k: (x * (x / 2) ** k, x * (x / 2) ** 2),
    ),
    "branches": (
        """
def main(x: f32[3, 8], k: i64[()]):
    y = tanh(x) if k > 2 else neg(x)
    a, b = (x, y) if k % 2 == 0 else (y, x)
    return a - b
""",
        lambda x, k: (1 if k % 2 == 0 else -1) * (x - (np.tanh(x) if k > 2 else -x)),
    ),
    "recursion that changes more than tensors": (
        """
def tree(depth, x, k):
    return x if depth == 0 else (tree(depth - 1, x * 2.0, k - 1) if k > 0 else tree(depth - 1, x + 1.0, k))

def main(x: f32[3, 8], k: i64[()]):
    return tree(3, x, k)
""",
        lambda x, k: x * 2.0 ** min(k, 3) + max(3 - k, 0),
    ),
    "numbers that change in a loop": (
        """
def collatz(n, steps):
    return steps if n == 1 else collatz(n / 2 if n % 2 == 0 else 3 * n + 1, steps + 1)

def main(x: f32[3, 8], k: i64[()]):
    return collatz(k + 1, 0), collatz(k + 26, cast(0, dtype=i64))
""",
        lambda x, k: (collatz(k + 1), collatz(k + 26)),
    ),
    "a known condition around one that a run decides": (
        """
def f(c, n, x):
    return x if c > 2 else (f(c + 1, n - 1, x * 2.0) if n > 0 else x + 1.0)

def main(x: f32[3, 8], k: i64[()]):
    return f(cast(0, dtype=i64), k, x)
""",
        lambda x, k: x * 2.0 ** min(k, 3) + (1.0 if k < 3 else 0.0),
    ),
    "sizes and attributes": (
        """
def main(x: f32[3, 8], k: i64[()]):
    t = transpose(x, perm=(1, 0))
    return cast(t, dtype=f64) * size(x, 1) if size(t, 0) == 8 else x
""",
        lambda x, k: x.T.astype(np.float64) * 8,
    ),
}


def graph_of(text: str) -> Graph:
    return inline_functions(parse_functions(text), {"w": W})


@pytest.mark.parametrize("name", PROGRAMS)
def test_graphs_compute_what_functions_mean(name: str) -> None:
    text, expected = PROGRAMS[name]
    for functions in (parse_functions(text), lift_lambdas(parse_functions(text))):
        model = weft.Model(weft.build(inline_functions(functions, {"w": W})).package)
        for k in (0, 1, 3, 4):
            wanted = expected(X, k)
            found = model.run([X, np.array(k)])
            for a, b in zip(found, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_texts_are_read_back(name: str) -> None:
    functions = parse_functions(PROGRAMS[name][0])
    for f in (functions, lift_lambdas(functions)):
        assert parse_functions(print_functions(f)) == f


@pytest.mark.parametrize("name", PROGRAMS)
def test_lifted_functions_have_none_inside(name: str) -> None:
    text = print_functions(lift_lambdas(parse_functions(PROGRAMS[name][0])))
    assert "lambda" not in text
    assert "    def" not in text


def test_a_loop_has_one_body() -> None:
    graph = graph_of(PROGRAMS["recursion that a run ends"][0])
    assert [n.op for n in graph.nodes].count("loop") == 1


def test_symbolic_sizes() -> None:
    graph = graph_of("def main(x: f32[n, 8]):\n    return x * cast(size(x, 0), dtype=f32) + w")
    model = weft.Model(weft.build(graph).package)
    for x in (X, X[:2]):
        np.testing.assert_allclose(model.run([x])[0], x * np.float32(len(x)) + W, rtol=1e-6)


MAIN = "def main(x: f32[3, 8], k: i64[()]):\n    "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MAIN + "return y", "function main, line 2: y is no variable"),
        (MAIN + "return matmul(x, x)", "function main, line 2"),
        (MAIN + "return x(k)", "is called, and is no function"),
        (MAIN + "f = lambda a, b: a\n    return f(x)", "takes 2 arguments, and is given 1"),
        (MAIN + "a, b = x\n    return a", "a, b are 2 names"),
        (MAIN + "return x if x else k", "should be a bool"),
        ("def f(x: f32[4]):\n    return x\n" + MAIN + "return f(x)", "x of f is declared f32[4]"),
        ("def f(x):\n    return f(x)\n" + MAIN + "return f(x)", "calls are inlined"),
        ("def f(x):\n    return x + f(x)\n" + MAIN + "return f(x)", "calls nest 50 deep"),
        ("def f(k, x):\n    return x if k == 0 else x + f(k - 1, x)\n" + MAIN + "return f(k, x)", "calls nest 50 deep"),
        ("def main(x):\n    return x", "the parameter x has no type"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ModelError) as error:
        graph_of(text)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "this is no function"),
        ("def f(x):\n    return x", "there is no function main"),
        ("def main(x: f32):\n    return x", "this is no type of a tensor"),
        ("def main(x: f99[3]):\n    return x", "f99"),
        ("def main(x: f32[3]):\n    x.y = 3\n    return x", "only a name"),
        ("def main(x: f32[3]):\n    while x: pass\n    return x", "this is no statement"),
        ("def main(x: f32[3]):\n    y = x", "ends with the return"),
        ("def main(x: f32[3], *y):\n    return x", "parameters are names"),
        ("def main(x: f32[3]):\n    return x[0]", "this is no expression"),
        ("def main(x: f32[3]):\n    return " + "(" * 3 + "x", "line 2"),
        ("def main(x: f32[3]):\n    return " + "-x" * 3000, "Python cannot parse this"),
    ],
)
def test_what_is_no_text_of_functions(text: str, message: str) -> None:
    with pytest.raises(ParseError) as error:
        parse_functions(text)
    assert message in str(error.value)
