"""Unroll and jam: how many vectors of a map go through each step together."""

from __future__ import annotations

from weft.cost import JAMMED, Jam, cheapest, is_long_formula, jam_plans


def test_the_most_vectors_that_a_loop_takes_at_once_wait_least() -> None:
    assert cheapest(list(jam_plans([1, 2, 4], 1000.0))).decision == Jam(4)
    assert cheapest(list(jam_plans([1, 2], 1000.0))).decision == Jam(2)
    cycles = [c.cycles for c in jam_plans(JAMMED, 1000.0)]
    assert cycles == sorted(cycles, reverse=True)


def test_a_few_instructions_make_no_vector_wait() -> None:
    assert not is_long_formula(3.0)
    assert is_long_formula(14.0)
