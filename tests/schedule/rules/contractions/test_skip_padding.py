"""Convolutions of small images leave out what they would multiply of padding, and compute the same bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.schedule import compiling
from tests.support.machines import SERVER

from weft.codegen.interp import run
from weft.driver.function import NativeFunction
from weft.ir import Var
from weft.loop import Buffer, Program, parse_program, print_program
from weft.lower import lower
from weft.ops.convolutions.conv import conv2d_blocked
from weft.ops.convolutions.transposed_conv import conv_transpose2d_blocked
from weft.schedule import schedule_program
from weft.schedule.rules.cpu.contractions import contraction, skip_padding
from weft.support.dtypes import f32
from weft.targets import Target
from weft.te import placeholder, to_program

HERE = replace(compiling.HERE, cores=1)
"""The widest target that this machine runs, without as many tasks in mind as it has cores."""
LANES = HERE.lanes(32)


def convolution(size: int, blocks: int = 8, lanes: int = LANES, taps: int = 3, **how: Any) -> Program:
    """Images of *size* x *size* places and two blocks of channels, to *blocks* blocks."""
    x, w = (
        placeholder((1, 2, size, size, lanes), f32, "x"),
        placeholder((blocks, 2, taps, taps, lanes, lanes), f32, "w"),
    )
    return to_program([x, w], [conv2d_blocked(x, w, **how)], "conv")


def transposed(size: int, lanes: int = LANES) -> Program:
    x, w = placeholder((1, 2, size, size, lanes), f32, "x"), placeholder((7, 2, 2, 2, 2, 2, lanes, lanes), f32, "w")
    how: Any = {"kernel": (4, 4), "strides": (2, 2), "pads": (1, 1, 1, 1)}
    return to_program([x, w], [conv_transpose2d_blocked(x, w, **how)], "conv")


ONES: Any = {"pads": (1, 1, 1, 1)}
CASES = [
    convolution(7, **ONES),
    convolution(5, **ONES),
    convolution(8, strides=(2, 2), **ONES),
    transposed(4),
    convolution(6, pads=(0, 1, 2, 0)),
    convolution(5, taps=5, pads=(2, 2, 2, 2)),
    convolution(9, dilations=(4, 4), pads=(4, 4, 4, 4)),
    convolution(7, dilations=(9, 9), pads=(9, 9, 9, 9)),
]


def arrays(program: Program) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = [[int(getattr(s, "value", 0)) for s in p.shape] for p in program.entry.params if isinstance(p, Buffer)]
    return [*[rng.standard_normal(s).astype(np.float32) for s in shapes[:-1]], np.zeros(shapes[-1], np.float32)]


def results(program: Program, target: Target) -> list[np.ndarray]:
    given = arrays(program)
    function, made = NativeFunction(schedule_program(program, target).program, target), []
    for threads in (1, 2):
        y = np.zeros_like(given[-1])
        function(*given[:-1], y, threads=threads)
        made.append(y)
    return made


def steps(program: Program, target: Target = SERVER) -> str:
    return str(schedule_program(program, target).trace)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("program", CASES)
def test_the_same_bits_with_and_without(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "skip_zeros" in steps(program, HERE)
    made = results(program, HERE)
    monkeypatch.setattr(contraction, "skipping", lambda *_: None)
    assert "skip_zeros" not in steps(program, HERE)
    for y in (*made, results(program, HERE)[1]):
        np.testing.assert_array_equal(y, made[0])
    assert made[0].any()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("program", [CASES[0], CASES[3]])
def test_the_interpreter_agrees_and_the_text_reads_back(program: Program) -> None:
    scheduled = schedule_program(program, HERE).program
    text = print_program(scheduled)
    assert print_program(parse_program(text)) == text
    x, w, y = arrays(program)
    run(scheduled, [x, w, y])
    np.testing.assert_allclose(y, results(program, HERE)[0], rtol=1e-5, atol=1e-5)


def test_only_products_inside_are_left() -> None:
    """7 x 7 places by tiles of two rows: the first one, those in the middle, and the last, of a single row."""
    made = str(lower(schedule_program(convolution(7, lanes=16, **ONES), SERVER).program, SERVER, unroll=True))
    of_rows, of_columns = (2 + 3) + (3 + 3) + 2, 6 + 7 + 6
    assert sum("] + broadcast(" in line for line in made.splitlines()) == of_rows * of_columns * 2
    assert "select" not in made
    assert "pad" not in made, "no padded copy is made"


@pytest.mark.parametrize(("blocks", "panels"), [(13, 3 + 1), (14, 4 + 2)])
def test_no_product_has_a_guard_of_its_own(blocks: int, panels: int) -> None:
    """Tiles of three and of four panels: the last one has fewer, and is told apart from the others before any product.

    Each is written out for both halves of a row, and once for all rows.
    """
    x, w = placeholder((1, 17, 18, 18, 1), f32, "x"), placeholder((blocks, 17, 3, 3, 1, 16), f32, "w")
    program = to_program([x, w], [conv2d_blocked(x, w, **ONES)], "conv")
    assert "skip_zeros" in steps(program)
    made = str(lower(schedule_program(program, SERVER).program, SERVER, unroll=True)).splitlines()
    products = [n for n, line in enumerate(made) if "] + broadcast(" in line]
    assert len(products) == 2 * (8 + 9 + 9) * panels
    assert not any(made[n - 1].lstrip().startswith("if ") for n in products)


def test_channels_that_are_read_one_by_one_go_inside_the_taps() -> None:
    """The elements that two taps share would take the registers of the sums."""
    x, w = placeholder((1, 5, 9, 9, 1), f32, "x"), placeholder((8, 5, 3, 3, 1, LANES), f32, "w")
    program = to_program([x, w], [conv2d_blocked(x, w, **ONES)], "conv")
    assert "s.reorder([ky, kx, icb])" in steps(program, HERE)
    given = arrays(program)
    run(program, given)
    made = results(program, HERE)
    np.testing.assert_allclose(made[0], given[-1], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(made[0], made[1])


@pytest.mark.parametrize(
    "program",
    [
        convolution(7, lanes=16),  # without padding
        convolution(112, lanes=16, **ONES),  # of which little is padding
        convolution(5, blocks=1, lanes=16, **ONES),  # too few panels for all cores
        convolution(7, lanes=16, taps=7, pads=(3, 3, 3, 3)),  # too much code
    ],
)
def test_padding_stays_where_leaving_it_out_gains_little(program: Program) -> None:
    assert "skip_zeros" not in steps(program)


def test_a_panel_of_another_phase_is_asked_for_next() -> None:
    """Four phases of a transposed convolution are cut apart; while one is computed the next one's weights are on their way."""
    x, w = placeholder((1, 32, 4, 4, 16), f32, "x"), placeholder((16, 2, 2, 32, 2, 2, 16, 16), f32, "w")
    y = conv_transpose2d_blocked(x, w, kernel=(4, 4), strides=(2, 2), pads=(1, 1, 1, 1))
    scheduled = schedule_program(to_program([x, w], [y], "conv"), SERVER)
    hinted = [line for line in str(scheduled.trace).splitlines() if "s.prefetch" in line]
    cut = [line.split("(")[1].split(",")[0] for line in str(scheduled.trace).splitlines() if "s.partition" in line]
    assert len(hinted) == 2
    assert not any(f"({name}," in hinted[0] for name in cut)
    same = results(to_program([x, w], [y], "conv"), HERE.having(read_ahead=4096, l2=2 << 20))
    np.testing.assert_array_equal(same[0], same[1])


def test_conditions_are_counted_without_their_loops() -> None:
    y, k, x = Var("y"), Var("k"), Var("x")
    inside = [y + k >= 1, y + k < 8, x < 3]
    assert skip_padding._share(inside, {y: 7, k: 3, x: 4}) == pytest.approx(19 / 21 * 3 / 4)
    assert skip_padding._share([y + k < 8], {y: 1 << 10, k: 1 << 10}) is None
