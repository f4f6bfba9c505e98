"""A product on the matrix unit, with one thread and with virtual threads: how busy the unit is, and that nothing goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.lower.simulator import Deadlock, Stream, instructions, races, run_in_some_order, simulate

from weft import te
from weft.codegen.interp import run
from weft.ir import cast
from weft.loop import Program, verify
from weft.lower import lower
from weft.schedule import Schedule
from weft.support.dtypes import i8, i32
from weft.targets.instructions.gemm_unit import GEMM_UNIT_TARGET

TILES = "a, b -> a // 16, b // 16, a % 16, b % 16"


def product(n: int, m: int, k: int) -> Program:
    """Y[i, j] = sum of X[i, k] * W[j, k]."""
    x, w = te.placeholder((n, k), i8, "X"), te.placeholder((m, k), i8, "W")
    r = te.reduce_axis(k, "k")
    y = te.compute((n, m), lambda i, j: te.sum_(cast(x[i, r], i32) * cast(w[j, r], i32), [r]), "Y")
    return te.to_program([x, w], [y])


def on_the_unit(n: int, m: int, k: int, threads: int) -> Schedule:
    """The product tile by tile: loads, multiplies and stores by instructions, tiles of a row shared out among *threads*."""
    s = Schedule(product(n, m, k))
    block = s.block("Y")
    out = s.cache_write(block, "acc")
    i, j = s.loops(out)
    i0, i1 = s.split(i, [None, 16])
    j0, v, j1 = s.split(j, [None, threads, 16])
    s.reorder([i0, j0, v, i1, j1])
    s.compute_at(block, v)
    copies = [s.pack(block, "X", TILES, "inp"), s.pack(block, "W", TILES, "wgt")]
    *_, ti, tj, tk = s.loops(block)
    k0, k1 = s.split(tk, [None, 16])
    s.reorder([k0, ti, tj, k1])
    for copy in copies:
        s.compute_at(copy, k0)
    s.transform_layout(block, "Y_acc", TILES)
    clear = s.decompose_reduction(block, k0)
    s.tensorize(ti, "gemm_unit.multiply")
    s.tensorize(s.loops(clear)[-2], "gemm_unit.clear")
    for copy, load in zip(copies, ("load_inp", "load_wgt"), strict=True):
        s.tensorize(s.loops(copy)[-2], f"gemm_unit.{load}")
    s.tensorize(i1, "gemm_unit.store")
    if threads > 1:
        s.vthread(v)
    return s


def flat(n: int, m: int, k: int, threads: int) -> Program:
    program = lower(on_the_unit(n, m, k, threads).program, GEMM_UNIT_TARGET, verify=True)
    verify(program, flat=True)
    return program


def arrays(n: int, m: int, k: int) -> tuple[dict[str, Any], Any]:
    """Inputs, flat, and what the product of them is."""
    made = np.random.default_rng(n + m + k)
    x, w = made.integers(-128, 128, (n, k)).astype(np.int8), made.integers(-128, 128, (m, k)).astype(np.int8)
    wanted = x.astype(np.int32) @ w.astype(np.int32).T
    return {"X": x.reshape(-1), "W": w.reshape(-1), "Y": np.zeros(n * m, np.int32)}, wanted.reshape(-1)


def stream(n: int, m: int, k: int, threads: int) -> tuple[Stream, dict[str, Any], Any]:
    given, wanted = arrays(n, m, k)
    return instructions(flat(n, m, k, threads), GEMM_UNIT_TARGET, given), given, wanted


def test_two_threads(golden: Callable[[str], None]) -> None:
    golden(f"{on_the_unit(32, 64, 48, 2)}\nbecomes\n\n{flat(32, 64, 48, 2)}")


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_the_interpreter_computes_it_before_and_after(threads: int) -> None:
    given, wanted = arrays(16, 64, 32)
    run(flat(16, 64, 32, threads), given)
    np.testing.assert_array_equal(given["Y"], wanted)
    y = np.zeros((16, 64), np.int32)
    run(on_the_unit(16, 64, 32, threads).program, [given["X"].reshape(16, 32), given["W"].reshape(64, 32), y])
    np.testing.assert_array_equal(y.reshape(-1), wanted)


def test_threads_hide_the_latency_of_loads() -> None:
    """A tile takes 60 cycles to load and 64 to multiply: one after the other, or both at once."""
    report = {}
    for threads in (1, 2):
        made, given, wanted = stream(64, 64, 256, threads)
        report[threads] = simulate(made)
        np.testing.assert_array_equal(given["Y"], wanted)
    assert 0.45 < report[1].utilisation("execute") < 0.55
    assert report[2].utilisation("execute") > 0.9
    assert report[2].busy == report[1].busy
    assert report[1].cycles > 1.8 * report[2].cycles


def test_more_threads_than_two_hide_no_more() -> None:
    two, four = (simulate(stream(32, 128, 128, t)[0]).cycles for t in (2, 4))
    assert abs(four - two) < 0.02 * two


@pytest.mark.sampled(4)
@pytest.mark.parametrize("threads", [1, 2, 3, 4])
@pytest.mark.parametrize("shape", [(16, 48, 16), (32, 96, 48), (48, 48, 64)])
def test_any_order_that_tokens_allow_computes_the_same(shape: tuple[int, int, int], threads: int) -> None:
    n, m, k = shape
    if (m // 16) % threads:
        m = 16 * threads
    made, given, wanted = stream(n, m, k, threads)
    assert races(made) == []
    for seed in range(6):
        given["Y"][:] = -1
        run_in_some_order(made, np.random.default_rng(seed))
        np.testing.assert_array_equal(given["Y"], wanted)


def test_every_token_but_the_last_is_needed() -> None:
    """Of each queue, one token less at the start: units that wait for ever; one wait less: a race."""
    made, _, _ = stream(32, 64, 48, 2)
    for queue in {i.queue for i in made.all if i.queue is not None}:
        pushes, pops = (
            [n for n, i in enumerate(made.all) if i.queue == queue and i.name == w] for w in ("push", "pop")
        )
        assert len(pushes) == len(pops)
        assert races(made.without(pushes[-1], pops[0])), queue
        with pytest.raises(Deadlock):
            simulate(made.without(pushes[0]))


def test_without_its_waits_the_unit_reads_what_is_not_there_yet() -> None:
    made, given, wanted = stream(32, 64, 48, 2)
    waits = [n for n, i in enumerate(made.all) if i.queue == (0, 1)]
    simulate(made.without(*waits))
    assert (given["Y"] != wanted).any()
