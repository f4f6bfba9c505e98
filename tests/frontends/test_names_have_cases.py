"""Each name of a format's table is used by a model of the tests (`names_in_cases`)."""

from __future__ import annotations

from typing import Final

import pytest
from tests.frontends.names_in_cases import READERS
from tests.frontends.operator_page import FORMATS, Format

SLOW: Final = ("StableHLO (JAX)",)
"""Formats whose cases are functions, which are lowered to be read."""


def test_each_format_is_read() -> None:
    assert {f.title for f in FORMATS} == READERS.keys()


@pytest.mark.parametrize(
    "f", [pytest.param(f, id=f.title, marks=pytest.mark.slow if f.title in SLOW else ()) for f in FORMATS]
)
def test_each_name_has_a_case(f: Format) -> None:
    if f.title in SLOW:
        pytest.importorskip("jax")
    names = {name for found in f.names().values() for name in found}
    assert not names - READERS[f.title]()
