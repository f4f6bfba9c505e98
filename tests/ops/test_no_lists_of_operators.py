"""An operator's facts stand on the operator: no other room keeps a list of operators' names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from tests.support.sources import SRC, parsed

from weft.ops import OPERATORS

ROOMS: Final = ("graph", "schedule", "lower", "cost", "driver", "frontends")
TABLES_OF_TRANSLATIONS: Final = (
    "frontends/onnx/ops",
    "frontends/torch/ops",
    "frontends/darknet/ops",
    "frontends/caffe/ops",
    "frontends/jax/ops",
    "frontends/coreml/ops",
    "frontends/mxnet/ops",
)
"""Rooms of tables that say which operator a format's operator becomes."""

ALLOWED: Final = {
    "graph/passes/simplify_calls.py:_RULES": "the rules of one pass, each for one operator",
    "graph/passes/simplify_calls.py:_ROUNDING": "the rules of one pass, each for one operator",
    "graph/passes/choose_layouts.py:_RULES": "the rules of one pass, each for one operator",
    "graph/passes/recognize_layer_norm.py:_SQUARES": "a pattern of calls",
    "graph/passes/recognize_layer_norm.py:_DEVIATION": "a pattern of calls",
    "graph/passes/recognize_layer_norm.py:_NORMALIZED": "a pattern of calls",
    "graph/passes/quantized/fold_dequantization.py:_RULES": "the rules of one pass, each for one operator",
    "graph/composites/sampling.py:NEAREST": "the operator that rounds in each mode of a composite",
    "frontends/jax/text/complex_pairs.py:_PART_BY_PART": "names of StableHLO's operations, of which some are Weft's too",
    "graph/rewriting/known_ranges.py:_RULES": "the rules of one analysis, each for one operator",
}


def constants(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Yields the module's constants by name."""
    for s in tree.body:
        if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name):
            yield s.targets[0].id, s.value
        elif isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name) and s.value is not None:
            yield s.target.id, s.value


def operators_in(value: ast.expr) -> set[str]:
    """The names of operators that are elements of a collection in *value*, or keys of a table in it."""
    found: set[str] = set()
    for n in ast.walk(value):
        elements = (
            n.keys if isinstance(n, ast.Dict) else n.elts if isinstance(n, ast.Set | ast.Tuple | ast.List) else []
        )
        names = {e.value for e in elements if isinstance(e, ast.Constant) and isinstance(e.value, str)}
        found |= {n for n in names if n in OPERATORS}
    return found


def lists_of_operators(text: str) -> dict[str, set[str]]:
    """The constants of a module that name two operators or more."""
    named = {name: operators_in(value) for name, value in constants(parsed(text)) if name != "__all__"}
    return {name: ops for name, ops in named.items() if len(ops) > 1}


def found() -> set[str]:
    """The constants of rooms above `ops/` that list operators, but for tables of translations."""
    return {
        f"{path}:{name}"
        for file in SRC.rglob("*.py")
        if (path := file.relative_to(SRC).as_posix()).startswith(tuple(f"{r}/" for r in ROOMS))
        and not path.startswith(TABLES_OF_TRANSLATIONS)
        for name in lists_of_operators(file.read_text())
    }


def test_no_room_keeps_a_list_of_operators() -> None:
    assert found() == set(ALLOWED)


def test_such_lists_are_found() -> None:
    text = 'A = frozenset({"relu", "gelu"})\nB: Final = {"conv2d": 0, "matmul": 1}\nC = ("relu",)\nD = ["add", ("sub", "mul")]'
    assert lists_of_operators(text) == {"A": {"relu", "gelu"}, "B": {"conv2d", "matmul"}, "D": {"add", "sub", "mul"}}
