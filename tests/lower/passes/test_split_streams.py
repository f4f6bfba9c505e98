"""A sum that streams a large matrix reads several parts of it side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.lower.running import before_and_after

from weft.loop import For, Prefetch, find_note, parse_program, statements
from weft.lower.streams.split_streams import split_streams
from weft.targets import Target, cpu

PAGES = cpu("avx512")
SMALL = replace(PAGES, caches=replace(PAGES.caches, l1=48 << 10, l2=256, page=64))
"""A machine of small caches and pages, for matrices that the interpreter multiplies in no time."""


def product(depth: int, added: str = "", mask: str = "", kind: str = "register") -> str:
    """One row times the panels of a matrix of *depth* rows."""
    value = f"S[ramp(0, 1, 16)] + broadcast(x[k], 16) * B[ramp(j * {16 * depth} + k * 16, 1, 16)]{added}"
    store = f"S.store(ramp(0, 1, 16), value={value}, mask={mask})" if mask else f"S[ramp(0, 1, 16)] = {value}"
    return f"""
def main(x: f32[{depth}], B: f32[{32 * depth}], y: f32[32]):
    S = alloc("{kind}", f32[16])
    for j in range(0, 2):
        S[ramp(0, 1, 16)] = broadcast(0.0, 16)
        for k in range(0, {depth}, prefetch=(B, 4)):
            {store}
        y[ramp(j * 16, 1, 16)] = S[ramp(0, 1, 16)]
"""


def loops(text: str, target: Target = SMALL) -> list[str]:
    """The extents of the loops along the sum, and whether one has hints."""
    program = split_streams(parse_program(text), target)
    found = [s for s in statements(program.entry.body) if isinstance(s, For) and s.var.name.startswith("k")]
    hints = any(find_note(s.notes, Prefetch) for s in found)
    return [*[str(s.extent) for s in found], *(["hints"] if hints else [])]


def test_parts_are_read_side_by_side(golden: Callable[[str], None]) -> None:
    golden(before_and_after(product(16), lambda p: split_streams(p, SMALL)))


@pytest.mark.parametrize(
    ("depth", "found"),
    [(64, ["8", "8"]), (12, ["2", "6"]), (10, ["2", "5"]), (11, ["11", "hints"]), (2, ["2", "hints"])],
)
def test_parts_are_equal_and_of_several_pages(depth: int, found: list[str]) -> None:
    assert loops(product(depth)) == found


def test_a_set_of_the_nearest_cache_has_room_for_all() -> None:
    caches = SMALL.caches
    few = replace(SMALL, caches=replace(caches, l1=8 * caches.set_period))
    many = replace(SMALL, caches=replace(caches, l1=12 * caches.set_period))
    assert loops(product(64), few) == ["16", "4"]
    assert loops(product(64), many) == ["8", "8"]


def test_other_loops_stay() -> None:
    stays = ["64", "hints"]
    assert loops(product(64), PAGES) == stays  # the cache holds the matrix
    assert loops(product(64, added=" * y[ramp(k, 1, 16)]")) == stays  # two are read
    assert loops(product(64, added=" + S[ramp(0, 1, 16)]")) == stays  # no sum
    assert loops(product(64, mask="ramp(0, 1, 16) < broadcast(5, 16)")) == stays
    assert loops(product(64, kind="global")) == stays  # what is in memory is in another place for each step, perhaps
