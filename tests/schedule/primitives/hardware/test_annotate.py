"""`annotate`: notes on loops and blocks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.schedule.compiling import check_compiled
from tests.schedule.programs import CASES, matmul, symbolic_matmul
from tests.schedule.refusing import refused
from tests.schedule.running import check, refusal, transition

from weft.schedule import Schedule, Trace, replay


def test_a_loop_and_a_block(golden: Callable[[str], None]) -> None:
    case = matmul()
    s = Schedule(case.program)
    i, _, k = s.loops(s.block("C"))
    s.annotate(k, "times", 4)
    s.annotate(s.block("C"), "why", "it is hot")
    s.annotate(i, "share", 0.5)
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_a_note_is_replaced_and_repeated() -> None:
    case = matmul()
    s = Schedule(case.program)
    i, *_ = s.loops(s.block("C"))
    i0, _ = s.split(i, [None, 2])
    s.annotate(i0, "times", 4)
    s.annotate(i0, "times", 5)
    s.annotate(i0, "other", 1)
    again = Schedule(case.program)
    replay(Trace.from_json(s.trace.to_json()), again)
    assert str(again) == str(s)
    check(case, s.program)


def test_refused_for_what_is_no_name(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    golden(refusal(lambda: s.annotate(s.block("C"), "not a name", 1)))


@pytest.mark.parametrize(
    "key", ["tensor", "cross_thread", "thread", "double_buffer", "prefetch", "task", "software_pipeline"]
)
def test_refused_for_what_only_a_primitive_may_say(key: str) -> None:
    """Lowering acts on these notes: the primitive has checked that it may."""
    s = Schedule(matmul().program)
    refused(
        lambda: s.annotate(s.loops(s.block("C"))[0], key, "A"),
        f"the note {key} is made by the primitive that it belongs to",
        "for i in range(0, 5)",
        "call that primitive instead",
    )


@pytest.mark.parametrize("value", [3, 0.25, "text", True], ids=["int", "float", "text", "bool"])
def test_a_value_survives_the_text_and_the_trace(value: int | float | str) -> None:
    case = matmul()
    s = Schedule(case.program)
    s.annotate(s.block("C"), "note", value)
    again = Schedule(case.program)
    replay(Trace.from_json(s.trace.to_json()), again)
    assert str(again) == str(s)
    check(case, s.program)


def test_notes_go_with_blocks_and_loops() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    i, j = s.loops(s.block("D"))
    s.annotate(j, "of_loop", 1)
    s.annotate(s.block("D"), "of_block", 2)
    s.reorder([j, i])
    s.parallel(j)
    s.compute_at(s.block("C"), j)
    assert "of_loop=1" in str(s)
    assert "annotate(of_block=2)" in str(s)
    check_compiled(case, s.program)


def test_symbolic() -> None:
    case = symbolic_matmul()
    s = Schedule(case.program)
    s.annotate(s.loops(s.block("D"))[0], "note", 1)
    check_compiled(case, s.program)


def test_refused_for_a_loop_that_is_gone() -> None:
    s = Schedule(CASES["bias_relu"]().program)
    i = s.loops(s.block("D"))[0]
    s.compute_inline(s.block("D"))
    refused(
        lambda: s.annotate(i, "note", 1),
        "there is no loop i in the program any more",
        None,
        "take the block's loops anew",
    )
