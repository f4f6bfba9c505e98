"""Versions of kernels: what a kernel of open sizes costs at given ones, and which cases are worth a kernel of their own."""

from __future__ import annotations

import pytest

from weft.cost import (
    OpenSize,
    Probe,
    Versions,
    cheapest,
    cycles_at,
    guess_of,
    picture_shapes,
    possible_cases,
    predict_cycles,
    size_of,
    version_plans,
)
from weft.cost.sizes import PICTURE_SIDES, given_sizes
from weft.ir import INDEX, Expr, Var, index
from weft.loop import Program
from weft.schedule.rules.choose import schedule_program
from weft.targets import Target, parse_target
from weft.te import Tensor, compute, placeholder, reduce_axis, sum_, to_program


@pytest.fixture(scope="module")
def machine() -> Target:
    return parse_target("cpu -mattr=avx2")


def product(rows: Expr | int, columns: int = 256, depth: int = 64) -> Program:
    a, b = placeholder((rows, depth), name="A"), placeholder((depth, columns), name="B")
    k = reduce_axis(depth, "k")
    made: Tensor = compute((rows, columns), lambda i, j: sum_(a[i, k] * b[k, j], [k]), "C")
    return to_program([a, b], [made])


def test_a_guess_is_in_the_limits_of_a_size() -> None:
    n, few, many = Var("n", INDEX), Var("few", INDEX, (1, 16)), Var("many", INDEX, (100, 200))
    assert [guess_of(v) for v in (n, few, many)] == [64, 16, 100]
    assert [size_of(e) for e in (n, few, few * 2, (few + 7) // 8, many, few + n, index(300))] == [
        64,
        16,
        32,
        2,
        64,
        64,
        300,
    ]


def test_pictures_have_several_sides_in_their_limits() -> None:
    h, w = Var("h", INDEX), Var("w", INDEX, (1, 400))
    shapes = picture_shapes([h, (w + 7) // 8, index(3)])
    assert shapes == [(s, -(-min(s, 400) // 8), 3) for s in PICTURE_SIDES]
    with given_sizes({h: 20}):
        assert {s[0] for s in picture_shapes([h, w])} == {20}


def test_a_kernel_of_open_sizes_costs_what_its_tiles_do(machine: Target) -> None:
    """Where one fits its axis, it is the same; a tile of several rows has one where there is one."""
    n = Var("n", INDEX)
    opened = schedule_program(product(n), machine).program
    known = schedule_program(product(64), machine).program
    costs = [cycles_at(opened, {n: rows}, machine) for rows in (1, 2, 4, 16, 64, 256)]
    assert costs == sorted(costs)
    assert costs[-2] == pytest.approx(predict_cycles(known, machine), rel=0.2)
    one = predict_cycles(schedule_program(product(1), machine).program, machine)
    assert one <= costs[0] < costs[-2] / 8


def test_what_is_asked_of_a_size(machine: Target) -> None:
    rows, terms = OpenSize(1, None, rows=True, reduced=False), OpenSize(1, None, rows=False, reduced=True)
    assert list(possible_cases([rows, terms], 32, machine)) == [(0, "==", 1), (1, "<=", 16)]
    assert not list(possible_cases([OpenSize(2, 64, rows=True, reduced=False)], 32, machine))
    assert not list(possible_cases([OpenSize(1, 16, rows=False, reduced=True)], 32, machine))
    assert not list(possible_cases([OpenSize(1, None, rows=False, reduced=False)], 32, machine))


def test_a_version_has_to_save_a_part_of_the_time() -> None:
    clear, slight, worse = (0, "==", 1), (0, "<=", 16), (1, "==", 1)
    probes = [Probe(clear, 100, 50), Probe(slight, 100, 95), Probe(worse, 100, 400)]
    assert cheapest(list(version_plans(probes))).decision == Versions((clear,))
    assert cheapest(list(version_plans(probes[1:]))).decision == Versions(())
    assert {c.decision for c in version_plans(probes)} == {Versions(()), *[Versions((p.case,)) for p in probes]}
