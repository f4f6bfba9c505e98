"""`fewer_collections`: compilations of several threads may overlap in any order."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from weft.driver.collector import OBJECTS, fewer_collections


@pytest.fixture(autouse=True)
def _thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def test_it_waits_for_more_objects_and_sets_back_what_was() -> None:
    with fewer_collections():
        assert gc.get_threshold() == (OBJECTS, 10, 10)
    assert gc.get_threshold() == (700, 10, 10)


def test_the_last_to_end_sets_back_what_the_first_found() -> None:
    first, second = fewer_collections(), fewer_collections()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.get_threshold()[0] == OBJECTS
    second.__exit__(None, None, None)
    assert gc.get_threshold() == (700, 10, 10)


def test_an_error_sets_it_back() -> None:
    with pytest.raises(KeyError), fewer_collections():
        raise KeyError
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("asked", [0, 2 * OBJECTS])
def test_who_collects_more_seldom_or_never_is_left_alone(asked: int) -> None:
    gc.set_threshold(asked, 10, 10)
    with fewer_collections():
        assert gc.get_threshold()[0] == asked
