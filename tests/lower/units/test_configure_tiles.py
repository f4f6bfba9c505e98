"""The configuration of matrix registers: once around a nest, apart for other heights, refused for two that are live at once."""

from __future__ import annotations

import pytest

from weft.loop import Program, parse_program
from weft.lower.units.configure_tiles import configure_tiles
from weft.support.errors import LoweringError


def program(body: str) -> Program:
    text = "\n".join([f"    {line}" for line in body.strip().splitlines()])
    return parse_program(f"def f(D: f32[256]):\n{text}\n")


def nest(tiles: str, rows: int, variable: str) -> str:
    return f"""for {variable} in range(0, 4):
    call("x86.amx_zero_f32_{rows}x16", {tiles}.at(0), 16)
    call("x86.amx_store_f32_{rows}x16", D.at(0), {tiles}.at(0), 16, 16)
"""


ONE = 'T = alloc("tile", f32[256])\n'


def test_once_around_the_outermost_loop() -> None:
    before = program(ONE + nest("T", 16, "i"))
    made = str(configure_tiles(before))
    assert made.count("x86.amx_configure") == made.count("x86.amx_release") == 1
    lines = [line.strip() for line in made.splitlines()]
    start = lines.index('call("x86.amx_configure", 16)')
    assert lines[start + 1].startswith("for i")
    assert lines[start + 4] == 'call("x86.amx_release")'


def test_programs_without_tiles_stay_as_they_are() -> None:
    before = program("for i in range(0, 4):\n    D[i] = f32(0)\n")
    assert configure_tiles(before) is before


def test_nests_of_other_heights_have_their_own() -> None:
    before = program(ONE + 'U = alloc("tile", f32[256])\n' + nest("T", 16, "i") + nest("U", 7, "j"))
    made = str(configure_tiles(before))
    assert [n for n in (7, 16) if f'call("x86.amx_configure", {n})' in made] == [7, 16]
    assert made.count("x86.amx_release") == 2


def test_heights_that_differ_in_one_buffer_are_refused() -> None:
    before = program(ONE + nest("T", 16, "i") + nest("T", 7, "j"))
    with pytest.raises(LoweringError, match=r"tiles of T have \[7, 16\] rows"):
        configure_tiles(before)


def test_two_buffers_that_take_turns_share_a_configuration() -> None:
    turns = "".join([nest(t, 16, v) for t, v in ("Ti", "Uj")]).replace("\n", "\n    ").rstrip(" ")
    before = program(ONE + 'U = alloc("tile", f32[256])\nfor k in range(0, 4):\n    ' + turns)
    made = str(configure_tiles(before))
    assert made.count("x86.amx_configure") == made.count("x86.amx_release") == 1


def test_two_buffers_in_one_nest_are_refused() -> None:
    in_turns = "for k in range(0, 4):\n    " + "\n    ".join(
        [f'call("x86.amx_zero_f32_16x16", {t}.at(0), 16)' for t in "TU"]
        + [f'call("x86.amx_store_f32_16x16", D.at(0), {t}.at(0), 16, 16)' for t in "TU"]
    )
    before = program(ONE + 'U = alloc("tile", f32[256])\n' + in_turns)
    with pytest.raises(LoweringError, match="T shares a nest with other tiles"):
        configure_tiles(before)
