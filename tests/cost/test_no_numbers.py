"""No cycle count, share of a cache or budget is written down above `cost/`: passes and rules ask, they do not know.

A number here is a constant of a module, in capitals, or a fraction in a function. Limits of search and of memory while compiling
stand in `cost/effort.py`, too. Numbers about none of these are listed by file, with the reason; the list may only shrink.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

import pytest
from tests.support.sources import SRC, parsed

LAYERS: Final = ("graph", "schedule", "lower")
ELSEWHERE: Final = ("lower/math/",)
"""Coefficients of polynomials, which are numbers of mathematics."""

HARMLESS: Final = frozenset({0, 0.5, 1, 2, 1000.0})
"""Neutral elements, halves, sides, and the milliseconds of a second."""

ALLOWED: Final[dict[str, int]] = {
    "graph/builder/constants.py": 1,  # elements shown in a message
    "graph/composites/run_time/late_shapes.py": 1,  # steps that no memory has
    "graph/composites/slicing.py": 2,  # an index that means the end, and the most pieces that a file may ask for
    "graph/composites/numerics/bessel_series.py": 6,  # degrees and terms of series, their bounds, and Euler's constant
    "graph/composites/numerics/counter_bits.py": 2,  # the constants of Threefry
    "graph/composites/numerics/gamma_derivatives.py": 2,  # terms of a series, and Bernoulli's numbers
    "graph/composites/numerics/incomplete_gamma.py": 2,  # the most steps of a sum, and the units that its last may add
    "graph/composites/numerics/special_functions.py": 3,  # coefficients of approximations
    "graph/composites/numerics/random_numbers.py": 2,  # the bits of a uniform number, and the step of a sequence of seeds
    "graph/composites/sampling.py": 3,  # the filters of images: a coefficient, the reach of each, and the steps of a table
    "graph/core/printer.py": 1,  # elements printed
    "graph/fusion/groups.py": 1,  # letters of a name
    "graph/layout/assign_layouts.py": 1,  # an enumeration
    "graph/layout/winograd_error.py": 3,  # a bound of rounding errors, how it is sampled, and the least divisor
    "graph/layout/winograd_plans.py": 1,  # the windows that the method is implemented for
    "graph/passes/convolutions/choose_transposed_winograd.py": 1,  # the same
    "graph/passes/convolutions/lower_dilated_convolutions.py": 2,  # orders of axes
    "graph/passes/convolutions/lower_volume_convolutions.py": 1,  # an order of axes
}
"""How many numbers a file has, none of which is about a machine or the compiler's own effort."""


def is_number(node: ast.AST, *, fractions_only: bool = False) -> bool:
    """Tells whether *node* is a number that may be one of a machine."""
    kinds = float if fractions_only else (int, float)
    if not isinstance(node, ast.Constant) or isinstance(node.value, bool) or not isinstance(node.value, kinds):
        return False
    return node.value not in HARMLESS


def numbers_of(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yields the line and the text of each number in a module: of its own constants, and the fractions in its functions."""
    for statement in tree.body:
        value = constant_of(statement)
        if value is not None:
            if any(is_number(n) for n in ast.walk(value)):
                yield statement.lineno, ast.unparse(statement)
            continue
        for node in ast.walk(statement):
            if is_number(node, fractions_only=True):
                yield node.lineno, ast.unparse(node)  # type: ignore[attr-defined]


def constant_of(statement: ast.stmt) -> ast.expr | None:
    """Returns the value of a module's constant, None for another statement."""
    if isinstance(statement, ast.AnnAssign):
        targets: list[ast.expr] = [statement.target]
    elif isinstance(statement, ast.Assign):
        targets = [n for t in statement.targets for n in (t.elts if isinstance(t, ast.Tuple) else [t])]
    else:
        return None
    named = all(isinstance(t, ast.Name) and re.fullmatch(r"_?[A-Z][A-Z0-9_]*", t.id) for t in targets)
    return statement.value if named else None


def found() -> dict[str, list[tuple[int, str]]]:
    """Returns the numbers of each file of the layers that has any."""
    files = [p for layer in LAYERS for p in sorted((SRC / layer).rglob("*.py"))]
    names = {p: p.relative_to(SRC).as_posix() for p in files}
    numbers = {
        name: list(numbers_of(parsed(path.read_text(encoding="utf-8"))))
        for path, name in names.items()
        if not name.startswith(ELSEWHERE)
    }
    return {name: lines for name, lines in numbers.items() if lines}


def test_passes_and_rules_know_no_numbers() -> None:
    more = {
        name: [f"{name}:{line}: {text}" for line, text in lines]
        for name, lines in found().items()
        if len(lines) > ALLOWED.get(name, 0)
    }
    told = "\n".join(line for lines in more.values() for line in lines)
    assert not more, f"ask `weft.cost` or the target instead:\n{told}"


def test_the_list_only_shrinks() -> None:
    """Where a file has fewer numbers than the list says, the list says so, too."""
    numbers = found()
    fewer = {name: len(numbers.get(name, [])) for name, n in ALLOWED.items() if len(numbers.get(name, [])) < n}
    assert not fewer, "write the smaller counts into ALLOWED, and drop those that are none"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("LATENCY = 4", 1),
        ("_SHARE: Final = 0.7", 1),
        ("A, B = 7.0, 5.0", 1),
        ("TIMES = {4: 1.0}", 1),
        ("SIZE = 1 << 12", 1),
        ("ZERO = 0", 0),
        ("NAMES = ('a',)", 0),
        ("lower = 12", 0),
        ("EXACT = True", 0),
        ("def f(x): return x * 0.75", 1),
        ("def f(x): return x * 16", 0),
        ("def f(x=1.5): return x", 1),
    ],
)
def test_what_is_a_number(text: str, count: int) -> None:
    assert len(list(numbers_of(ast.parse(text)))) == count
