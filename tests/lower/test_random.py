"""Passes on programs made by hypothesis: whatever they are, they compute the same afterwards."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lower.formulas import formulas, scheduled
from tests.lower.running import Array, inputs_of, results
from tests.strategies import programs
from tests.support.sampling import tried

from weft.loop import For, LoopKind, Program, Stmt, Thread, map_stmts, print_program, verify, without_notes
from weft.lower import ProgramReport, lower
from weft.lower.buffers.compact_buffers import compact_buffers
from weft.lower.buffers.flatten_buffers import flatten_buffers
from weft.lower.buffers.hoist_allocations import hoist_allocations
from weft.lower.buffers.lower_blocks import lower_blocks
from weft.lower.buffers.place_allocations import place_allocations
from weft.lower.cleanup.remove_noops import remove_noops
from weft.lower.cleanup.simplify_program import simplify_program
from weft.lower.loops.hoist_invariants import hoist_invariants
from weft.lower.loops.outline_tasks import outline_tasks
from weft.lower.loops.partition_loops import partition_loops
from weft.lower.loops.tighten_loop_bounds import tighten_loop_bounds
from weft.lower.loops.trim_loops import trim_loops
from weft.lower.loops.unroll_loops import unroll_loops
from weft.lower.loops.unswitch_loops import unswitch_loops
from weft.targets import cpu

# Random bodies depend on the order of iterations.
KEPT = {LoopKind.VECTORIZED: LoopKind.SERIAL, LoopKind.BOUND: LoopKind.SERIAL}


def in_order(program: Program) -> Program:
    """The program with loops that run one iteration after another."""

    def change(s: Stmt) -> Stmt | None:
        if isinstance(s, For) and s.kind in KEPT:
            return For(s.var, s.begin, s.extent, KEPT[s.kind], s.body, without_notes(s.notes, Thread))
        return None

    return program.with_function(program.entry.with_body(map_stmts(program.entry.body, change)))


def plain(change: Callable[[Program], Program]) -> Callable[[Program], Program]:
    return lambda p: change(lower_blocks(p))


PASSES: dict[str, Callable[[Program], Program]] = {
    "lower_blocks": lower_blocks,
    "place_allocations": place_allocations,
    "compact_buffers": lambda p: compact_buffers(place_allocations(p)),
    "flatten_buffers": plain(flatten_buffers),
    "hoist_invariants": plain(hoist_invariants),
    "partition_loops": plain(lambda p: partition_loops(p, cpu("avx512"))),
    "simplify_program": plain(simplify_program),
    "partition_and_simplify": plain(lambda p: simplify_program(partition_loops(p, cpu("avx512")))),
    "remove_noops": plain(remove_noops),
    "outline_tasks": plain(outline_tasks),
    "tighten_loop_bounds": plain(lambda p: tighten_loop_bounds(p, cpu("avx512"))),
    "trim_loops": lambda p: trim_loops(flatten_buffers(lower_blocks(p))),
    "unroll_loops": plain(unroll_loops),
    "unswitch_loops": plain(lambda p: unswitch_loops(p, cpu("avx512"))),
    "hoist_allocations": plain(hoist_allocations),
    "lower": lambda p: lower(p, cpu("avx512"), verify=True),
}


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("count", [8, pytest.param(25, marks=pytest.mark.slow)])
def test_a_pass_keeps_the_meaning_of_any_program(name: str, count: int) -> None:
    @settings(max_examples=count, derandomize=True, deadline=None)
    @given(programs())
    def check(drawn: Program) -> None:
        program = in_order(drawn)
        values = inputs_of(program)
        changed = PASSES[name](program)
        verify(changed)
        for x, y in zip(results(program, values), results(changed, values), strict=True):
            assert same(x, y), f"{print_program(program)}\n->\n\n{print_program(changed)}"

    check()


def same(a: Array, b: Array) -> bool:
    """Equal, NaN for NaN."""
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))


@tried(10, 40, formulas(), st.data(), st.sampled_from(["avx512", "avx2", "sse4"]))
def test_lowering_keeps_the_meaning_of_any_schedule(program: Program, data: st.DataObject, level: str) -> None:
    made = scheduled(data.draw, program)
    values = inputs_of(program)
    expected = results(program, values)

    def check(report: ProgramReport) -> None:
        if report.changed:
            for x, y in zip(expected, results(report.after, values), strict=True):
                assert same(x, y), f"{print_program(made)}\n-> after {report.name}\n\n{print_program(report.after)}"

    verify(lower(made, cpu(level), verify=True, trace=check), flat=True)
