"""Windows of an image are packed panel by panel, with their padding, where tiles of rows would wait for the image's lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.schedule.compiling import HERE
from tests.schedule.rules.contractions.test_packed_panel import AVX2
from tests.schedule.running import same_results
from tests.support.jit import load

from weft import te
from weft.cost import (
    Candidate,
    Choosing,
    Order,
    PackPanel,
    SkipPadding,
    WindowPanelProblem,
    cheapest,
    pack_window_plans,
)
from weft.ir import ZERO, Expr, Var, all_of, select
from weft.loop import Alloc, Buffer, Program, Stmt, statements
from weft.lower import lower
from weft.schedule import Schedule, carry_out
from weft.targets import Target


def convolution(groups: int, channels: int, size: tuple[int, int], kernel: tuple[int, int], pad: int) -> Program:
    """Returns a convolution of *channels* a group, as many as it makes, whose rows alone are padded at either end."""
    (height, width), (ky, kx) = size, kernel
    rows, columns = height - ky + 1, width + 2 * pad - kx + 1
    x = te.placeholder((1, groups * channels, height, width), name="x")
    w = te.placeholder((groups * channels, channels, ky, kx), name="w")
    c, i, j = [te.reduce_axis(n, name) for n, name in ((channels, "c"), (ky, "i"), (kx, "j"))]
    image = x

    def first(o: Var) -> Expr:
        return ZERO if groups == 1 else o // channels * channels

    if pad:
        image = te.compute(
            (1, groups * channels, height, width + 2 * pad),
            lambda n, o, p, q: select(all_of([q >= pad, q - pad < width]), x[n, o, p, q - pad], 0.0),
            "padded",
        )
    y = te.compute(
        (1, groups * channels, rows, columns),
        lambda n, o, p, q: te.sum_(w[o, c, i, j] * image[n, first(o) + c, p + i, q + j], [c, i, j]),
        "y",
    )
    return te.to_program([x, w], [y], "convolution")


def packing(candidates: Sequence[Candidate[Any]]) -> Candidate[Any]:
    wanted = (PackPanel(pack=True), Order(by_rows=False), SkipPadding(skip=False))
    return next((c for c in candidates if c.decision in wanted), cheapest(candidates))


def decided(program: Program, target: Target = AVX2) -> list[bool]:
    planner = Choosing(target)
    carry_out(program, planner)
    return [s.decision.pack for s in planner.plan.steps if isinstance(s.decision, PackPanel)]


def parts(body: Stmt) -> list[Buffer]:
    return [a.buffer for a in statements(body) if isinstance(a, Alloc) and a.buffer.name in ("padded", "x_local")]


def test_they_are_packed_where_the_lines_of_a_panel_leave_the_first_level() -> None:
    assert decided(convolution(1, 256, (1, 946), (1, 3), 1)) == [True]
    assert decided(convolution(1, 16, (1, 946), (1, 3), 1)) == [False]


def test_the_cheaper_copies_are_those_measured_faster() -> None:
    """On one core of AMD's Zen 3: 121 rows of 241 channels, 87 of 113 unpadded; and 9 rows of 156 channels of 9 x 9 places."""

    def ratio(p: WindowPanelProblem) -> float:
        plain, packed = [c.cycles for c in pack_window_plans(p, AVX2, is_shared_out=True)]
        return packed / plain

    assert ratio(WindowPanelProblem(40, 31, 30_848, 25_064, 241, 913_872, is_padded=True)) < 0.2
    assert ratio(WindowPanelProblem(30, 22, 28_928, 15_368, 226, 231_424, is_padded=False)) < 0.5
    assert ratio(WindowPanelProblem(72, 3, 29_952, 18_720, 468, 302_016, is_padded=True)) > 1


def test_one_panel_is_not_packed_where_others_would_have_no_work() -> None:
    (only,) = pack_window_plans(
        WindowPanelProblem(1, 31, 30_848, 25_064, 241, 913_872, is_padded=True), AVX2, is_shared_out=False
    )
    assert not only.decision.pack


CASES = [
    (1, 13, (1, 100), (1, 3), 1),
    (1, 9, (5, 33), (2, 3), 0),
    (3, 4, (6, 61), (3, 5), 2),
    (2, 5, (4, 49), (1, 7), 3),
]


def packed(program: Program) -> Schedule:
    planner = Choosing(AVX2, packing)
    s = carry_out(program, planner)
    assert PackPanel(pack=True) in [step.decision for step in planner.plan.steps]
    return s


@pytest.mark.parametrize("case", CASES)
def test_packed_windows(case: tuple[Any, ...]) -> None:
    program = convolution(*case)
    s = packed(program)
    assert len(parts(s.program.entry.body)) == 1
    same_results(program, s.program)
    made, (x, w) = np.random.default_rng(0), program.entry.params[:2]
    given = [
        made.integers(-3, 4, [int(str(n)) for n in p.shape]).astype(np.float32) for p in (x, w) if isinstance(p, Buffer)
    ]
    found, wanted = [np.empty(_shape(program), np.float32) for _ in range(2)]
    load(lower(s.program, HERE, verify=True), HERE)[1](*given, found)
    load(lower(program, HERE, verify=True), HERE)[1](*given, wanted)
    np.testing.assert_array_equal(found, wanted)


def _shape(program: Program) -> list[int]:
    last = program.entry.params[-1]
    assert isinstance(last, Buffer)
    return [int(str(n)) for n in last.shape]


@pytest.mark.parametrize(("case", "rows"), [(CASES[0], 13), (CASES[1], 18), (CASES[2], 12), (CASES[3], 5)])
def test_a_part_takes_no_more_than_the_windows_of_its_panel(case: tuple[Any, ...], rows: int) -> None:
    """Whole vectors of each row of a channel that they access, and not the image."""
    flat = lower(packed(convolution(*case)).program, AVX2, verify=True)
    sizes = {int(str(b.shape[0])) for f in flat.functions for b in parts(f.body)}
    assert all(n <= rows * 40 for n in sizes)
    assert sizes
