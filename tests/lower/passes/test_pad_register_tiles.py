"""Rows of registers of an odd length are padded to whole vectors, where nothing else is done with them."""

from __future__ import annotations

import pytest
from tests.lower.running import check_equal

from weft.loop import Alloc, For, LoopKind, Program, parse_program, statements, verify
from weft.lower.buffers.pad_register_tiles import pad_register_tiles
from weft.targets import cpu

TILE = """
def f(A: f32[64], B: f32[64], C: f32[64]):
    S = alloc("register", f32[{size}])
    for i in unrolled(0, 2):
        for j in vectorized(0, {length}):
            S[i * {step} + j] = 0.0
    for k in range(0, 3):
        for i in unrolled(0, 2):
            for j in vectorized(0, {length}):
                S[i * {step} + j] = S[i * {step} + j] + A[k * 8 + j] * C[i]
    {between}
    for i in unrolled(0, 2):
        for j in vectorized(0, {read}):
            B[i * {length} + j] = S[i * {step} + {at}]
"""


def tile(length: int, **given: object) -> Program:
    filled = {"step": length, "size": 2 * length, "read": length, "at": "j", "between": "C[0] = 1.0"} | given
    return parse_program(TILE.format(length=length, **filled))


def padded(program: Program, level: str = "avx512") -> tuple[list[str], list[str]]:
    """Returns the sizes of registers and the lengths of vectorized loops, before and after; checks that both compute the same."""
    made = pad_register_tiles(program, cpu(level))
    verify(made)
    check_equal(program, made)
    before, after = (
        [f"{s.buffer.shape[0]}" for s in statements(p.entry.body) if isinstance(s, Alloc)]
        + [f"{s.extent}" for s in statements(p.entry.body) if isinstance(s, For) and s.kind is LoopKind.VECTORIZED]
        for p in (program, made)
    )
    return before, after


@pytest.mark.parametrize(("length", "whole"), [(3, 4), (6, 8), (7, 8), (13, 16), (22, 24), (30, 32)])
def test_rows_are_whole_vectors(length: int, whole: int) -> None:
    before, after = padded(tile(length))
    assert before == [f"{2 * length}", *[f"{length}"] * 3]
    assert after == [f"{2 * whole}", *[f"{whole}"] * 3]


@pytest.mark.parametrize("length", [4, 8, 16, 20, 24])
def test_rows_of_vectors_stay(length: int) -> None:
    before, after = padded(tile(length))
    assert after == before


def test_rows_that_are_far_enough_apart_stay_there() -> None:
    assert padded(tile(13, step=16, size=32)) == (["32", "13", "13", "13"], ["32", "16", "16", "16"])


@pytest.mark.parametrize(
    "given",
    [
        {"read": 5},  # rows are not alike
        {"at": "5 - j"},
        {"between": "S[3] = 2.0"},  # an element alone
        {"step": 7, "size": 14},  # rows are apart by what is no multiple
        {"between": "C[0] = S[3]"},
    ],
)
def test_what_is_used_otherwise_stays(given: dict[str, object]) -> None:
    before, after = padded(tile(6, **given))
    assert after == before


def test_registers_used_together_are_padded_together_or_not_at_all() -> None:
    text = """
def f(A: f32[64], B: f32[64]):
    S = alloc("register", f32[6])
    T = alloc("register", f32[6])
    for j in vectorized(0, 6):
        S[j] = A[j]
    for j in vectorized(0, 6):
        T[j] = S[j] + A[j + 6]
    B[0] = {last}
    for j in vectorized(0, 6):
        B[j + 1] = T[j]
"""
    assert padded(parse_program(text.format(last="A[0]")))[1] == ["8", "8", "8", "8", "8"]
    before, after = padded(parse_program(text.format(last="T[0]")))
    assert after == before


def test_a_machine_without_masks_keeps_its_rows() -> None:
    before, after = padded(tile(6), "sse4")
    assert after == before
