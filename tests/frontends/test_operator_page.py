"""The page of the formats' operators is up to date, and says of all that TVM's Relay frontends read whether Weft reads it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("h5py")
pytest.importorskip("torch")

from tests.frontends.operator_page import FORMATS, Format, page
from tests.frontends.torch import operators_section

from weft.frontends.torch.registry import TABLE

PAGE = Path(__file__).parents[2] / "docs" / "operators_of_formats.md"
CHECKLIST = Path(__file__).with_name("relay_operators.txt").read_text(encoding="utf-8").splitlines()[1:]
NAMES = {title: names.split() for title, _, names in (line.partition(": ") for line in CHECKLIST)}
ELSEWHERE = {
    "InputLayer": "the importer's",
    "BatchNormalizationV1": "TensorFlow 1's name",
    "TAN": "no operator of its schema",
    "DETECTION_POSTPROCESS": "a custom operator",
    "DecodeJpeg": "a reader of files",
}


def words_of(f: Format) -> set[str]:
    """Returns the names that the page says are not read, without what it says in words."""
    return {name for names in f.not_read for name in names.split(", ") if re.fullmatch(r"[\w*]+", name)}


def test_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "run python -m tests.frontends.operator_page > docs/operators_of_formats.md"
    )


@pytest.mark.parametrize("f", FORMATS, ids=lambda f: f.title)
def test_what_is_not_read_is_not_in_the_table(f: Format) -> None:
    read = {name for names in f.names().values() for name in names}
    assert not read & words_of(f)


def test_what_pytorch_has_and_is_not_read_is_in_no_table() -> None:
    named = {name for names in operators_section.NOT_READ for name in re.findall(r"\w*_\w+", names)} - {"linalg_eig"}
    assert len(named) > 3
    assert not named & {operators_section.short(name) for name in TABLE}


@pytest.mark.parametrize("f", [f for f in FORMATS if f.title in NAMES], ids=lambda f: f.title)
def test_the_checklist_is_answered(f: Format) -> None:
    read = {name for names in f.names().values() for name in names}
    refused = words_of(f) | ELSEWHERE.keys()
    starts = tuple(w.rstrip("*") for w in refused if w.endswith("*"))
    left = [n for n in NAMES[f.title] if n not in read | refused and not (starts and n.startswith(starts))]
    assert left == []
