"""The benchmark of operators: a case of each that Weft translates, valid models, and figures that tell which is slow."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from weft.frontends.onnx.registry import TABLE

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a module of the benchmarks, which are scripts beside each other."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


def test_cases_are_of_operators_that_there_are(load: Any) -> None:
    module = load("operator_cases")
    importlib.import_module("weft.frontends.onnx.translations")  # fills the table
    for name, build in module.CASES.items():
        domain, _, operator = name.rpartition(".")
        assert (domain, operator) in TABLE
        case = module.Case(operator, "small", **build(0))
        assert case.model(22).graph.node[0].op_type == operator
        assert case.constants <= set(case.inputs)


def test_all_operators_have_a_case(load: Any) -> None:
    rows = [{"operator": c.operator} for c in load("operator_cases").cases(sizes=("small",))]
    assert len(load("operators").without_case(rows)) == 0


def test_a_case_is_compared_and_timed(load: Any) -> None:
    operators = load("operators")
    rows = [operators.measure(c, 0.01) for c in load("operator_cases").cases(["TopK"], ["small"])]
    (row,) = rows
    assert row["ratio"] > 0
    assert "geometric mean" in operators.summary(rows)
    assert operators.differs(1.0, [load("operator_cases").f(1)]) != ""
