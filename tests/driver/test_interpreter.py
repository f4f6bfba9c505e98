"""Settings of the interpreter while compiling: compilations of several threads may overlap in any order."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator

import pytest
from tests.models import mlp

from weft.driver.compile import compile_package
from weft.driver.options import CompileOptions
from weft.driver.python_settings import OBJECTS, PATIENCE, YOUNGER, collecting_new_objects, tuned_for_compiling
from weft.targets import host

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


class Cycle:
    """An object that refers to itself, so that only the collector frees it."""

    def __init__(self) -> None:
        self.itself = self


def test_new_objects_are_collected_at_the_end_of_the_block_and_the_oldest_are_not() -> None:
    cycle = Cycle()
    gc.collect()  # makes it one of the oldest
    oldest = weakref.ref(cycle)
    del cycle
    with collecting_new_objects():
        inside = weakref.ref(Cycle())
        assert inside() is not None
    assert inside() is None
    assert oldest() is not None
    gc.collect()
    assert oldest() is None


def test_who_has_frozen_objects_keeps_them_so() -> None:
    gc.freeze()
    frozen = gc.get_freeze_count()
    with collecting_new_objects():
        inside = weakref.ref(Cycle())
    assert inside() is None
    assert gc.get_freeze_count() == frozen


def test_nothing_is_collected_before_the_end_of_a_compilation() -> None:
    """Setting the threshold back has Python look through all objects that a compilation made, unless they were collected."""
    collected: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        collected.extend([info["generation"]] if phase == "start" else [])

    model = mlp(2).SerializeToString()
    gc.callbacks.append(note)
    try:
        compile_package(model, host(), CompileOptions())
    finally:
        gc.callbacks.remove(note)
    assert collected == [YOUNGER]
