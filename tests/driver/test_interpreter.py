"""`tuned_for_compiling`: compilations of several threads may overlap in any order."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest

from weft.driver.python_settings import OBJECTS, PATIENCE, tuned_for_compiling

FOUND = ((700, 10, 10), 0.005)


def settings() -> tuple[tuple[int, int, int], float]:
    return gc.get_threshold(), round(sys.getswitchinterval(), 6)


@pytest.fixture(autouse=True)
def _settings() -> Iterator[None]:
    threshold, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(*FOUND[0])
    sys.setswitchinterval(FOUND[1])
    yield
    gc.set_threshold(*threshold)
    sys.setswitchinterval(interval)


def test_it_changes_the_settings_and_sets_back_what_was() -> None:
    with tuned_for_compiling():
        assert settings() == ((OBJECTS, 10, 10), PATIENCE)
    assert settings() == FOUND


def test_the_last_to_end_sets_back_what_the_first_found() -> None:
    first, second = tuned_for_compiling(), tuned_for_compiling()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert settings() == ((OBJECTS, 10, 10), PATIENCE)
    second.__exit__(None, None, None)
    assert settings() == FOUND


def test_an_error_sets_them_back() -> None:
    with pytest.raises(KeyError), tuned_for_compiling():
        raise KeyError
    assert settings() == FOUND


@pytest.mark.parametrize("asked", [0, 2 * OBJECTS])
def test_who_collects_more_seldom_or_never_is_left_alone(asked: int) -> None:
    gc.set_threshold(asked, 10, 10)
    with tuned_for_compiling():
        assert gc.get_threshold()[0] == asked


def test_who_switches_more_often_is_left_alone() -> None:
    sys.setswitchinterval(PATIENCE / 5)
    before = sys.getswitchinterval()
    with tuned_for_compiling():
        assert sys.getswitchinterval() == before
    assert sys.getswitchinterval() == before
