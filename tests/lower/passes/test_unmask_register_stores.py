"""Stores to registers lose their masks where nobody looks at the lanes that the masks leave out, and only there."""

from __future__ import annotations

import numpy as np
import pytest

from weft.codegen.interp import run
from weft.cost import size_of
from weft.loop import Buffer, Program, Store, parse_program, statements
from weft.lower.buffers.unmask_register_stores import unmask_register_stores

TILE = """
def f(A: f32[48], B: f32[48]):
    S = alloc("register", f32[32])
    for i in unrolled(0, 2):
        S.store(ramp(i * 16, 1, 16), value=broadcast(0.0, 16), mask={first})
    for k in range(0, 3):
        for i in unrolled(0, 2):
            S.store(ramp(i * 16, 1, 16), value=S[ramp(i * 16, 1, 16)] + A[ramp(i * 16, 1, 16)], mask={second})
    for i in unrolled(0, 2):
        B.store(ramp(i * {step}, 1, 16), value=S[ramp(i * {read}, 1, 16)], mask={third})
"""
MASK, OTHER = "ramp(0, 1, 16) < broadcast(5, 16)", "ramp(0, 1, 16) < broadcast(6, 16)"


def check_same(*programs: Program) -> None:
    """Checks that programs of one input and one output compute the same."""
    results = []
    for p in programs:
        sizes = [size_of(b.shape[0]) for b in p.entry.params if isinstance(b, Buffer)]
        arrays = [np.arange(sizes[0], dtype=np.float32), np.full(sizes[1], -1, np.float32)]
        run(p, arrays)
        results.append(arrays[1])
    np.testing.assert_array_equal(results[1], results[0])


def masks(**given: object) -> tuple[list[bool], list[bool]]:
    """Returns for each store of a tile whether it has a mask, before and after; checks that both compute the same."""
    filled = {"first": MASK, "second": MASK, "third": MASK, "step": 16, "read": 16} | given
    program = parse_program(TILE.format(**filled))
    made = unmask_register_stores(program)
    check_same(program, made)
    before, after = (
        [s.mask is not None for s in statements(p.entry.body) if isinstance(s, Store)] for p in (program, made)
    )
    return before, after


def test_one_mask_is_needed_at_the_end_only() -> None:
    assert masks() == ([True, True, True], [False, False, True])


@pytest.mark.parametrize("given", [{"first": OTHER}, {"second": OTHER}, {"third": OTHER}])
def test_masks_that_differ_stay(given: dict[str, str]) -> None:
    before, after = masks(**given)
    assert after == before


def test_vectors_that_overlap_keep_their_masks() -> None:
    before, after = masks(read=8)
    assert after == before


def test_a_mask_that_changes_meanwhile_stays() -> None:
    moving = "ramp(0, 1, 16) < broadcast(5 + i, 16)"
    before, after = masks(first=moving, second=moving, third=moving)
    assert after == before


ENDS = """
def f(A: f32[64], B: f32[96]):
    S = alloc("register", f32[72])
    for i in unrolled(0, 2):
        for a in unrolled(0, 2):
            S.store(ramp(i * 32 + a * 8, 1, 8), value=broadcast(0.0, 8), mask=ramp(a * 8, 1, 8) < broadcast({size}, 8))
    for i in unrolled(0, 2):
        for b in unrolled(0, {vectors}):
            S.store(
                ramp(i * 32 + b * 8, 1, 8),
                value=S[ramp(i * 32 + b * 8, 1, 8)] + A[ramp(i * 16 + b * 8, 1, 8)],
                mask=ramp(b * 8, 1, 8) < broadcast(11, 8),
            )
    for i in unrolled(0, 2):
        for c in unrolled(0, 2):
            B.store(
                ramp(i * 16 + c * 8, 1, 8),
                value=S[ramp(i * 32 + c * {step}, 1, 8)],
                mask=ramp(c * 8, 1, 8) < broadcast(11, 8),
            )
"""


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({}, False),
        ({"size": 12}, True),
        ({"step": 16}, True),  # other elements of a row are looked at
        ({"vectors": 5}, True),  # a vector that belongs to the next row
    ],
)
def test_vectors_of_rows_whose_ends_are_left_out(given: dict[str, int], kept: bool) -> None:
    program = parse_program(ENDS.format(**{"size": 11, "vectors": 2, "step": 8} | given))
    made = unmask_register_stores(program)
    check_same(program, made)
    stores = [s for s in statements(made.entry.body) if isinstance(s, Store) and s.buffer.name == "S"]
    assert [s.mask is not None for s in stores] == [kept] * 2


BESIDE = """
def f(A: f32[48], B: f32[48]):
    S = alloc("register", f32[40])
    for i in unrolled(0, 2):
        S[ramp(i * 16, 1, {whole})] = broadcast(0.0, {whole})
        S.store(ramp(i * 16 + 8, 1, 8), value=broadcast(0.0, 8), mask=ramp(8, 1, 8) < broadcast(11, 8))
    for k in range(0, 3):
        for i in unrolled(0, 2):
            S[ramp(i * 16, 1, 8)] = S[ramp(i * {step} + {first}, 1, 8)] + A[ramp(i * 8, 1, 8)]
            S.store(
                ramp(i * 16 + 8, 1, 8),
                value=S[ramp(i * 16 + 8, 1, 8)] + A[ramp(i * 8 + 8, 1, 8)],
                mask=ramp(8, 1, 8) < broadcast(11, 8),
            )
    for i in unrolled(0, 2):
        B[ramp(i * 16, 1, 8)] = S[ramp(i * 16, 1, 8)]
        B.store(ramp(i * 16 + 8, 1, 8), value=S[ramp(i * 16 + 8, 1, 8)], mask=ramp(8, 1, 8) < broadcast(11, 8))
"""


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({}, False),
        ({"whole": 16}, True),  # also the lanes that the masks leave out
        ({"step": 8}, True),  # of the next row's masked vector
        ({"first": 4}, True),
    ],
)
def test_vectors_beside_whole_ones_of_the_same_rows(given: dict[str, int], kept: bool) -> None:
    program = parse_program(BESIDE.format(**{"whole": 8, "step": 16, "first": 0} | given))
    made = unmask_register_stores(program)
    check_same(program, made)
    stores = [s for s in statements(made.entry.body) if isinstance(s, Store) and s.buffer.name == "S"]
    assert [s.mask is not None for s in stores] == [False, kept] * 2


def test_vectors_at_fixed_places_beside_a_whole_one() -> None:
    text = """
def f(A: f32[16], B: f32[16]):
    S = alloc("register", f32[16])
    S[ramp(0, 1, 8)] = A[ramp(0, 1, 8)]
    S.store(ramp({first}, 1, 8), value=A[ramp(8, 1, 8)], mask=ramp(8, 1, 8) < broadcast(11, 8))
    B[ramp(0, 1, 8)] = S[ramp(0, 1, 8)]
    B.store(ramp(8, 1, 8), value=S[ramp({first}, 1, 8)], mask=ramp(8, 1, 8) < broadcast(11, 8))
"""
    for first, kept in ((8, False), (4, True)):
        program = parse_program(text.format(first=first))
        made = unmask_register_stores(program)
        check_same(program, made)
        stores = [s for s in statements(made.entry.body) if isinstance(s, Store) and s.buffer.name == "S"]
        assert [s.mask is not None for s in stores] == [False, kept]
