"""Weights that no near cache holds are asked for ahead, on machines whose programs have to, and read right all the same."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from tests.schedule.compiling import HERE
from tests.schedule.running import same_results
from tests.support.jit import load
from tests.support.machines import SERVER

from weft import te
from weft.loop import Program
from weft.lower import lower
from weft.schedule import schedule_program
from weft.targets import Target

ASKS = SERVER.having(l1=32 << 10)


def product(depth: int, rows: int = 4) -> Program:
    """Some rows times a matrix in 6 panels of 64 columns."""
    x, w = te.placeholder((rows, depth), name="x"), te.placeholder((6, depth, 64), name="w")
    k = te.reduce_axis(depth, "k")
    y = te.compute((rows, 6, 64), lambda i, o, j: te.sum_(x[i, k] * w[o, k, j], [k]), "y")
    return te.to_program([x, w], [y], "product")


def steps(program: Program, target: Target) -> str:
    return str(schedule_program(program, target).trace)


def test_a_long_stream_is_asked_for() -> None:
    assert "s.prefetch(k, 'w', 16)" in steps(product(128), ASKS), "4096 bytes: 16 rows of 64 elements"


@pytest.mark.parametrize("target", [ASKS.having(read_ahead=0), ASKS.having(l1=1 << 20)])
def test_not_where_the_machine_or_the_cache_does(target: Target) -> None:
    assert "prefetch" not in steps(product(128), target)


def test_a_core_that_sees_far_asks_only_for_what_it_uses_often() -> None:
    seeing = ASKS.having(read_ahead_uses=4)
    assert "prefetch" not in steps(product(128, rows=3), seeing)
    assert "s.prefetch(k, 'w', 16)" in steps(product(128, rows=4), seeing)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("rows", [4, 40])
def test_past_the_end_of_a_stream(rows: int) -> None:
    program = product(64, rows)
    scheduled = schedule_program(program, ASKS).program
    assert "prefetch=(w" in str(scheduled)
    same_results(program, scheduled)
    made = np.random.default_rng(0)
    x, w = made.integers(0, 5, (rows, 64)).astype(np.float32), made.integers(0, 5, (6, 64, 64)).astype(np.float32)
    y = np.empty((rows, 6, 64), np.float32)
    load(lower(scheduled, HERE, verify=True), HERE)[1](x, w, y)
    np.testing.assert_array_equal(y, np.einsum("ik,okj->ioj", x, w))


def shared(rows: int, panels: int = 64, depth: int = 256) -> Program:
    """Rows times a matrix that is larger than the second-level cache, in panels of 256 bytes for each of its rows."""
    x, w = te.placeholder((rows, depth), name="x"), te.placeholder((panels, depth, 64), name="w")
    k = te.reduce_axis(depth, "k")
    y = te.compute((rows, panels, 64), lambda i, o, j: te.sum_(x[i, k] * w[o, k, j], [k]), "y")
    return te.to_program([x, w], [y], "product")


FAR = ASKS.having(l2=1 << 20)
TIGHT = ASKS.having(l2=400 << 10)


def distances(program: Program, target: Target) -> list[tuple[str, int]]:
    """The loops that ask for the matrix, and how many iterations ahead."""
    return [(f, int(n)) for f, n in re.findall(r"s.prefetch\((\w+), 'w', (\d+)\)", steps(program, target))]


def test_tiles_that_share_a_panel_ask_for_the_next_one_together() -> None:
    panels, near = distances(shared(48, depth=1024), FAR)
    (alone,) = distances(shared(48, depth=1024), TIGHT)
    assert panels == ("ax1", 1)
    assert (alone[0], near[0]) == ("k", "k")
    assert 2 * near[1] == alone[1], "a panel that all ask for is nearer when its turn comes"


@pytest.mark.parametrize(
    ("program", "target"),
    [
        (shared(4), FAR),  # one tile
        (shared(40, panels=8), FAR),  # all panels stay near
        (shared(48, depth=1024), TIGHT),  # two panels do not
        (shared(2000), FAR),  # so many tiles that the first one's wait is nothing
    ],
)
def test_not_where_it_is_of_no_use(program: Program, target: Target) -> None:
    assert ", 'w', 1)" not in steps(program, target)


def as_it_is(rows: int, depth: int = 800, columns: int = 4096) -> Program:
    """Rows times a matrix that is in no panels: a tile's part of each row is in another page."""
    x, w = te.placeholder((rows, depth), name="x"), te.placeholder((depth, columns), name="w")
    k = te.reduce_axis(depth, "k")
    y = te.compute((rows, columns), lambda i, j: te.sum_(x[i, k] * w[k, j], [k]), "y")
    return te.to_program([x, w], [y], "product")


def test_pieces_of_long_rows_are_asked_for_by_those_who_need_them() -> None:
    """They are too far apart to be asked for by all; panels of more rows are packed instead."""
    found = distances(as_it_is(8, columns=4112), FAR)
    assert [f for f, _ in found] == ["k"]


def test_the_product_is_right_where_tiles_ask_together() -> None:
    program = shared(40)
    scheduled = schedule_program(program, FAR).program
    made = np.random.default_rng(0)
    x, w = made.integers(0, 5, (40, 256)).astype(np.float32), made.integers(0, 5, (64, 256, 64)).astype(np.float32)
    y = np.empty((40, 64, 64), np.float32)
    load(lower(scheduled, HERE, verify=True), HERE)[1](x, w, y)
    np.testing.assert_array_equal(y, np.einsum("ik,okj->ioj", x, w))


def phases(depth: int) -> Program:
    """Rows times 16 x 6 matrices, one panel each: the loops over panels are two, the inner one short."""
    x, w = te.placeholder((16, 48, depth), name="x"), te.placeholder((16, 6, depth, 64), name="w")
    k = te.reduce_axis(depth, "k")
    y = te.compute((16, 6, 48, 64), lambda p, o, i, j: te.sum_(x[p, i, k] * w[p, o, k, j], [k]), "y")
    return te.to_program([x, w], [y], "product")


def test_the_last_panel_of_a_loop_is_followed_by_the_first_of_the_next() -> None:
    program, one_core = phases(512), replace(FAR, cores=1)
    assert distances(program, one_core)[0] == ("ax0_ax1", 1), "one loop over all panels"
    assert distances(phases(1024), replace(TIGHT, cores=1))[0][0] == "k", "no panel is asked for"
    assert "s.fuse" not in steps(phases(1024), replace(TIGHT, cores=1))
    scheduled = schedule_program(program, one_core).program
    made = np.random.default_rng(0)
    x, w = (
        made.integers(0, 5, (16, 48, 512)).astype(np.float32),
        made.integers(0, 5, (16, 6, 512, 64)).astype(np.float32),
    )
    y = np.empty((16, 6, 48, 64), np.float32)
    load(lower(scheduled, HERE, verify=True), HERE)[1](x, w, y)
    np.testing.assert_array_equal(y, np.einsum("pik,pokj->poij", x, w))


def window(size: int, taps: int = 3, channels: int = 14, made: int = 6) -> Program:
    """A convolution in blocks of 16 channels with a stride of two, as packed layouts have it: *channels* blocks to *made*."""
    x = te.placeholder((1, channels, 2 * size + 2, 2 * size + 2, 16), name="x")
    w = te.placeholder((made, channels, taps, 16, 16), name="w")
    b, r, c = te.reduce_axis(channels, "b"), te.reduce_axis(taps, "r"), te.reduce_axis(16, "c")
    y = te.compute(
        (1, made, size, size, 16),
        lambda n, o, i, j, v: te.sum_(x[n, b, 2 * i + r, 2 * j, c] * w[o, b, r, c, v], [b, r, c]),
        "y",
    )
    return te.to_program([x, w], [y], "window")


SLOW = FAR.having(fma_per_cycle=1)


def places(program: Program, target: Target) -> list[tuple[str, int]]:
    """The loops that ask for the image, and how many iterations ahead."""
    return [(f, int(n)) for f, n in re.findall(r"s.prefetch\((\w+), 'x', (\d+)\)", steps(program, target))]


def test_a_tap_asks_for_the_row_of_the_next() -> None:
    assert places(window(27), SLOW) == [("r", 1)]
    assert places(window(27, taps=1), SLOW) == [("b", 1)], "or for the next block of channels, if it is the only one"


@pytest.mark.parametrize(
    ("program", "target"),
    [
        (window(12), SLOW),  # the image stays near
        (window(27, channels=1, taps=1), SLOW),  # there is no other step
        (window(28, made=2), SLOW.having(fma_per_cycle=2)),  # twice as fast, there is no time for it
        (window(27), SLOW.having(read_ahead=0)),
        (product(128, 2000), SLOW),  # rows of a matrix go on
    ],
)
def test_places_are_not_asked_for_elsewhere(program: Program, target: Target) -> None:
    assert places(program, target) == []


def test_a_convolution_that_asks_for_places_is_right() -> None:
    program = window(27, channels=6)
    scheduled = schedule_program(program, SLOW.having(l2=200 << 10)).program
    assert "prefetch=(x" in str(scheduled)
    made = np.random.default_rng(0)
    x, w = (made.integers(0, 3, n).astype(np.float32) for n in ((1, 6, 56, 56, 16), (6, 6, 3, 16, 16)))
    y = np.empty((1, 6, 27, 27, 16), np.float32)
    load(lower(scheduled, HERE, verify=True), HERE)[1](x, w, y)
    rows = np.stack([x[:, :, r : r + 54 : 2, 0:54:2] for r in range(3)])
    np.testing.assert_array_equal(y, np.einsum("rnbijc,obrcv->noijv", rows, w))
