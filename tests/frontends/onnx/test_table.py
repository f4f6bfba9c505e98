"""The table of operators and the page made from it."""

from __future__ import annotations

from pathlib import Path

import onnx.defs
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

from weft.frontends.onnx.contrib import MICROSOFT
from weft.frontends.onnx.registry import NEWEST_OPSET, TABLE, translates
from weft.frontends.onnx.table import page

PAGE = Path(__file__).parents[3] / "docs" / "operators.md"


def test_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m weft.frontends.onnx.table > docs/operators.md"


def test_entries_are_operators_of_onnx_or_of_onnx_runtime() -> None:
    of_onnx = {(s.domain, s.name) for s in onnx.defs.get_all_schemas_with_history()}
    of_runtime = {(s.domain, s.name) for s in get_all_operator_schema()}
    assert {key for key in TABLE if key[0] != MICROSOFT} <= of_onnx | {("", "SimplifiedLayerNormalization")}
    assert set(TABLE) - of_onnx <= of_runtime


def test_newest_operator_set_is_that_of_onnx() -> None:
    assert onnx.defs.onnx_opset_version() == NEWEST_OPSET


def test_an_operator_has_one_translation() -> None:
    with pytest.raises(ValueError, match="Relu has two translations"):
        translates("Relu")(lambda c: c.input(0))
