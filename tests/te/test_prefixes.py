"""Prefixes of a reducer along one dimension: as loops, vectors and machine code."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.te.running import Array, results

from weft import te
from weft.driver.function import build_function
from weft.loop import parse_program, verify
from weft.loop.alpha_equivalence import check_same
from weft.schedule import schedule_program
from weft.support.dtypes import i64
from weft.support.errors import TypeMismatch
from weft.targets import parse_target
from weft.te import OpClass, classify


def sums(x: Array, axis: int, exclusive: bool, reverse: bool) -> Array:
    turned = np.flip(x, axis) if reverse else x
    total = np.cumsum(turned, axis) - (turned if exclusive else 0)
    return np.flip(total, axis) if reverse else total


def test_text(golden: Callable[[str], None]) -> None:
    x = te.placeholder((3, 5, 4), name="x")
    texts = []
    for exclusive, reverse in ((False, False), (True, True)):
        program = te.to_program([x], [te.prefix(x, te.sum_, 1, "y", exclusive=exclusive, reverse=reverse)])
        verify(program)
        check_same(parse_program(str(program)), program)
        texts.append(str(program))
    golden("\n".join(texts))


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.data(), st.booleans(), st.booleans())
@settings(max_examples=20, deadline=None)
def test_of_any_dimension(shape: list[int], data: st.DataObject, exclusive: bool, reverse: bool) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    x = te.placeholder(shape, i64, "x")
    v = np.random.default_rng(0).integers(-9, 9, shape)
    made = results([x], [te.prefix(x, te.sum_, axis, exclusive=exclusive, reverse=reverse)], v)
    np.testing.assert_array_equal(made[0], sums(v, axis, exclusive, reverse))


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_start_comes_before_all_elements(exclusive: bool, reverse: bool) -> None:
    x, start = te.placeholder((3, 5, 4), i64, "x"), te.placeholder((3, 1, 4), i64, "start")
    y = te.prefix(x, te.sum_, 1, start=start, exclusive=exclusive, reverse=reverse)
    program = te.to_program([x, start], [y])
    check_same(parse_program(str(program)), program)
    rng = np.random.default_rng(0)
    v, before = rng.integers(-9, 9, (3, 5, 4)), rng.integers(-9, 9, (3, 1, 4))
    (made,) = results([x, start], [y], v, before)
    np.testing.assert_array_equal(made, sums(v, 1, exclusive, reverse) + before)


def test_a_start_has_one_element() -> None:
    x = te.placeholder((3, 5), i64, "x")
    with pytest.raises(TypeMismatch, match=r"p: the start is i64\[3, 5\] where prefixes of i64\[3, 5\] begin"):
        te.prefix(x, te.sum_, 1, "p", start=x)


@pytest.mark.parametrize("axis", [0, 1])
def test_compiled_in_vectors(axis: int) -> None:
    x = te.placeholder((6, 40, 50), i64, "x")
    s = schedule_program(te.to_program([x], [te.prefix(x, te.max_, axis)]), parse_target("cpu"))
    assert "vectorized" in str(s.program)
    v = np.random.default_rng(0).integers(-99, 99, (6, 40, 50))
    found = np.empty_like(v)
    build_function(s.program)(v, found)
    np.testing.assert_array_equal(found, np.maximum.accumulate(v, axis))


def test_it_is_opaque() -> None:
    x = te.placeholder((3,), name="x")
    assert classify(te.prefix(x, te.sum_, 0).op) is OpClass.OPAQUE


def test_refuses_a_dimension_that_there_is_not() -> None:
    with pytest.raises(TypeMismatch, match="y: there is no dimension 1 of a tensor of 1"):
        te.prefix(te.placeholder((3,), name="x"), te.sum_, 1, "y")
