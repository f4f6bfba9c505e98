"""Values and conditions that do not vary in a loop go before it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.lower.running import before_and_after
from tests.lower.simplified import AVX512

from weft.loop import parse_program
from weft.lower.loops.hoist_invariants import hoist_invariants
from weft.lower.loops.unswitch_loops import unswitch_loops

Golden = Callable[[str], None]

GUARDED_INIT = """
def main(A: f32[4, 6, 5], C: f32[4]):
    for i in range(0, 4):
        for k in range(0, 6):
            for l in range(0, 5):
                if k * 5 + l == 0:
                    C[i] = 0.0
                C[i] = C[i] + A[i, k, l]
"""


def test_hoist_invariants_takes_the_first_iteration_out(golden: Golden) -> None:
    golden(before_and_after(GUARDED_INIT, hoist_invariants))


INVARIANT = """
def main(A: f32[4, 6], C: f32[4, 6], n: i64):
    for i in range(0, 4):
        for j in range(0, 6):
            x = let(i + n)
            if n < 3:
                C[i, j] = A[i, j] + cast(f32, x)
"""


def test_hoist_invariants(golden: Golden) -> None:
    golden(before_and_after(INVARIANT, hoist_invariants, {"n": 2}))


PARTLY_INVARIANT = """
def main(A: f32[8, 64], C: f32[10, 66]):
    for i in range(0, 10):
        for j in range(0, 66):
            C[i, j] = select(0 < i and 0 < j and i < 9 and j < 65, A[i - 1, j - 1], 0.0)
"""


def test_unswitch_loops(golden: Golden) -> None:
    golden(before_and_after(PARTLY_INVARIANT, lambda p: unswitch_loops(p, AVX512)))


@pytest.mark.parametrize(
    ("call", "moves"), [('call("someone.else")', False), ('call("weft.prefetch", A.at(0), 1)', True)]
)
def test_what_a_first_iteration_does_stays_where_a_call_may_change_its_condition(call: str, moves: bool) -> None:
    """A call that nothing declares may change any memory; a hint changes none."""
    program = parse_program(f"""\
def main(A: f32[8], F: bool[1]):
    for k in range(0, 8):
        if k == 0 and F[0]:
            A[0] = 0.0
        {call}
""")
    lines = [line.strip() for line in str(hoist_invariants(program)).splitlines()]
    assert lines.index("for k in range(0, 8):") == (3 if moves else 1)
