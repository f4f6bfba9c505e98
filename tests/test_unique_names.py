"""Unique names: which numbers follow a name that is taken, and how long many equal names take."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from weft.support.unique_names import UniqueNames


def test_a_name_that_is_taken_gets_the_next_number() -> None:
    names = UniqueNames()
    assert [names.of("x") for _ in range(3)] == ["x", "x_1", "x_2"]
    assert names.of("y") == "y"


def test_numbers_that_are_names_themselves_are_left_out() -> None:
    names = UniqueNames(["x", "x_2"])
    assert [names.of("x") for _ in range(3)] == ["x_1", "x_3", "x_4"]
    assert names.of("x_1") == "x_1_1"


@pytest.mark.parametrize(("separator", "made"), [(".", "x.2"), ("", "x2")])
def test_separators_and_first_numbers(separator: str, made: str) -> None:
    names = UniqueNames(["x"], first=2, separator=separator)
    assert names.of("x") == made


def test_equal_names_are_found_in_one_step_each(monkeypatch: pytest.MonkeyPatch) -> None:
    class Taken(set[str]):
        """A set that counts how often it is asked."""

        asked = 0

        def __contains__(self, name: object) -> bool:
            Taken.asked += 1
            return super().__contains__(name)

        def __iter__(self) -> Iterator[str]:
            raise AssertionError("it was gone through")

    names = UniqueNames()
    monkeypatch.setattr(names, "_taken", Taken())
    for _ in range(1000):
        names.of("v")
    assert Taken.asked <= 2000
