"""The search for choices under which a model can be imported."""

from __future__ import annotations

from itertools import product

import pytest

from weft.frontends.onnx.rank_choices import MOST_READINGS, RankChoices
from weft.support.errors import ModelError


@pytest.mark.parametrize("wanted", list(product((False, True), repeat=3)))
def test_any_choices_are_found(wanted: tuple[bool, ...]) -> None:
    choices = RankChoices()

    def read() -> list[bool]:
        made = [choices.fewer() for _ in wanted]
        if tuple(made) != wanted:
            raise ModelError(f"not {made}")
        return made

    assert choices.read(read) == list(wanted)


def test_choices_of_a_part_are_made_again_before_it_is_given_up() -> None:
    """The first part works with its second choice, the other one never does, and is left out."""
    choices, given_up = RankChoices(), list[int]()

    def part(number: int, works_with: bool | None) -> None:
        first = choices.made
        if choices.fewer() is not works_with:
            choices.try_others(first)
            given_up.append(number)

    def read() -> None:
        given_up.clear()
        part(0, True)
        part(1, None)
        part(2, False)

    choices.read(read)
    assert given_up == [1]


def test_the_first_error_is_told_where_no_choice_is_left() -> None:
    choices = RankChoices()

    def read() -> None:
        raise ModelError("with more" if not choices.fewer() else "with fewer")

    with pytest.raises(ModelError, match="with more"):
        choices.read(read)


def test_no_model_is_imported_for_ever() -> None:
    choices, readings = RankChoices(), 0

    def read() -> None:
        nonlocal readings
        readings += 1
        for _ in range(20):
            choices.fewer()
        raise ModelError("never")

    with pytest.raises(ModelError, match="never"):
        choices.read(read)
    assert readings == MOST_READINGS
