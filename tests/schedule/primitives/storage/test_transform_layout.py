"""`transform_layout`: an intermediate buffer gets another layout, for all that use it."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from tests.schedule.compiling import check_compiled
from tests.schedule.products import product
from tests.schedule.programs import CASES, bias_relu, conv2d, symbolic_rows
from tests.schedule.random_steps import step
from tests.schedule.refusing import refused
from tests.schedule.running import check, refusal, transition

from weft.codegen.interp import run
from weft.loop import Alloc, parse_program, statements
from weft.schedule import Schedule
from weft.support.errors import ScheduleError


def test_blocks_of_columns(golden: Callable[[str], None]) -> None:
    case = bias_relu(3, 8, 2)
    s = Schedule(case.program)
    s.transform_layout(s.block("C"), "C", "i, j -> j // 4, i, j % 4")
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_a_reader_names_it_too() -> None:
    case = bias_relu()
    s = Schedule(case.program)
    s.transform_layout(s.block("D"), "C", "i, j -> j, i")
    s.transform_layout(s.block("D"), "D", "i, j -> i * 7 + j")
    check(case, s.program)


def test_padding_holds_anything() -> None:
    case = conv2d(3, 5, 6, 5)
    s = Schedule(case.program)
    s.transform_layout(s.block("Y"), "Y", "o, i, j -> o // 4, i, j, o % 4")
    s.transform_layout(s.block("Y"), "P", "c, i, j -> c // 2, i, j, c % 2")
    check(case, s.program)


def test_padding_is_filled(golden: Callable[[str], None]) -> None:
    case = conv2d(3, 5, 6, 5)
    s = Schedule(case.program)
    s.transform_layout(s.block("P"), "P", "c, i, j -> c // 2, i, j, c % 2", 7.0)
    check(case, s.program)
    golden(f"{s}\n")
    text = str(s).replace('    P = alloc("global", f32[2, 7, 8, 2])\n', "")
    values = case.arrays()
    made = values["P"] = np.zeros((2, 7, 8, 2), np.float32)
    run(parse_program(text.replace("def main(", "def main(P: f32[2, 7, 8, 2], ")), values)
    assert (made[1, :, :, 1] == 7.0).all()
    assert (made[1, :, :, 0] != 7.0).all()


def test_symbolic_shapes() -> None:
    case = symbolic_rows(n=3, m=5)
    s = Schedule(case.program)
    s.transform_layout(s.block("A"), "A", "i, j -> j // 4, i, j % 4")
    check(case, s.program)


def test_it_is_scheduled_further() -> None:
    case = bias_relu(4, 8, 2)
    s = Schedule(case.program)
    s.transform_layout(s.block("C"), "C", "i, j -> j // 4, i, j % 4")
    i, j, _ = s.loops(s.block("C"))
    s.parallel(i)
    j0, _ = s.split(j, [None, 4])
    s.parallel(j0)
    check(case, s.program)


LAYOUTS = {
    "the same": "i, j -> i, j",
    "transposed": "i, j -> j, i",
    "flat": "i, j -> i * 8 + j",
    "flat by columns": "i, j -> j * 6 + i",
    "tiles": "i, j -> i // 2, j // 4, i % 2, j % 4",
    "swizzled tiles": "i, j -> j // 4, i // 2, j % 4, i % 2",
    "reversed rows": "i, j -> 5 - i, j",
    "both reversed": "i, j -> 7 - j, 5 - i",
    "cut across rows": "i, j -> (i * 8 + j) // 16, (i * 8 + j) % 16",
    "a unit dimension": "i, j -> 0, i, j",
    "units within": "i, j -> i, 0, j, 0",
    "three levels": "i, j -> i, j // 4, (j // 2) % 2, j % 2",
}


@pytest.mark.parametrize("text", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("buffer", ["C", "D"])
def test_a_layout(text: str, buffer: str) -> None:
    """The result of a reduction, and of an assignment."""
    case = bias_relu(6, 8, 2)
    s = Schedule(case.program)
    s.transform_layout(s.block(buffer), buffer, text)
    check(case, s.program)


def test_as_machine_code() -> None:
    case = conv2d(3, 5, 6, 5)
    s = Schedule(case.program)
    s.transform_layout(s.block("Y"), "Y", "o, i, j -> o // 4, i, j, o % 4")
    s.transform_layout(s.block("P"), "P", "c, i, j -> i, c // 2, j, c % 2", 0)
    check_compiled(case, s.program)


def test_of_one_dimension() -> None:
    case = CASES["stencil"]()
    s = Schedule(case.program)
    s.transform_layout(s.block("A"), "A", "i -> i % 4, i // 4")
    s.transform_layout(s.block("B"), "B", "i -> i // 3, i % 3")
    check_compiled(case, s.program)


def test_reads_at_several_places() -> None:
    case = CASES["blur"]()
    s = Schedule(case.program)
    s.transform_layout(s.block("A"), "A", "i, j -> j // 4, i, j % 4")
    check(case, s.program)


def test_reads_at_places_from_memory() -> None:
    case = CASES["gather"]()
    s = Schedule(case.program)
    s.transform_layout(s.block("A"), "A", "i -> i % 3, i // 3")
    s.transform_layout(s.block("S"), "S", "i -> 4 - i")
    check(case, s.program)


def test_one_of_several_results() -> None:
    case = CASES["argmax"]()
    s = Schedule(case.program)
    s.transform_layout(s.block("top"), "top", "i -> i // 2, i % 2")
    check(case, s.program)


def test_the_states_of_a_recurrence() -> None:
    case = CASES["recurrence"]()
    s = Schedule(case.program)
    s.transform_layout(s.block("G"), "G", "t, i -> i, t")
    check(case, s.program)


def test_changed_again() -> None:
    case = bias_relu(6, 8, 2)
    s = Schedule(case.program)
    s.transform_layout(s.block("C"), "C", "i, j -> j, i")
    s.transform_layout(s.block("C"), "C", "j, i -> i, j")
    assert str(s) == str(case.program)


def test_after_placing_its_producer() -> None:
    case = bias_relu(6, 8, 2)
    s = Schedule(case.program)
    s.compute_at(s.block("C"), s.loops(s.block("D"))[0])
    s.transform_layout(s.block("C"), "C", "i, j -> j // 4, i, j % 4")
    check_compiled(case, s.program)


def test_before_placing_its_producer() -> None:
    case = bias_relu(6, 8, 2)
    s = Schedule(case.program)
    s.transform_layout(s.block("D"), "D", "i, j -> j, i")
    s.compute_at(s.block("D"), s.loops(s.block("E"))[0])
    check_compiled(case, s.program)


def test_in_another_memory() -> None:
    case = bias_relu(6, 8, 2)
    s = Schedule(case.program)
    s.set_scope(s.block("C"), "local")
    s.transform_layout(s.block("C"), "C", "i, j -> j, i")
    assert 'C = alloc("local", f32[8, 6])' in str(s)
    check(case, s.program)


def test_symbols_in_the_layout() -> None:
    case = symbolic_rows(n=3, m=5)
    s = Schedule(case.program)
    s.transform_layout(s.block("A"), "A", "i, j -> j, i")
    s.transform_layout(s.block("S"), "S", "i -> i // 2, i % 2")
    check_compiled(case, s.program)


def test_refused_for_a_parameter(golden: Callable[[str], None]) -> None:
    s = Schedule(bias_relu().program)
    golden(refusal(lambda: s.transform_layout(s.block("E"), "E", "i, j -> j, i")))


def test_refused_for_what_is_not_used(golden: Callable[[str], None]) -> None:
    s = Schedule(bias_relu().program)
    golden(refusal(lambda: s.transform_layout(s.block("E"), "C", "i, j -> j, i")))


def test_refused_to_fill_what_a_reduction_writes() -> None:
    s = Schedule(bias_relu().program)
    refused(
        lambda: s.transform_layout(s.block("C"), "C", "i, j -> j // 4, i, j % 4", 0),
        "C is a reduction",
        'with block("C"',
        "compute_at moves a reduction to where it is used",
    )


def test_refused_to_fill_what_two_blocks_write() -> None:
    s = Schedule(bias_relu().program)
    s.decompose_reduction(s.block("C"), s.loops(s.block("C"))[2])
    refused(
        lambda: s.transform_layout(s.block("C"), "C", "i, j -> j // 4, i, j % 4", 0),
        "2 blocks write C, not one",
        'with block("C"',
        "leave the padding alone: without pad",
    )


def test_refused_to_fill_inside_shared_loops() -> None:
    s = Schedule(bias_relu().program)
    s.compute_at(s.block("D"), s.loops(s.block("E"))[0])
    refused(
        lambda: s.transform_layout(s.block("D"), "D", "i, j -> j // 4, i, j % 4", 0),
        "D shares loops with other blocks",
        'with block("D"',
        "choose the layout before placing it",
    )


def test_refused_after_taking_vectors() -> None:
    s = Schedule(product(4, 32, 8).program)
    copy = s.pack(s.block("C"), "B", "k, j -> j // 16, k // 4, j % 16, k % 4", "local")
    s.tensorize(s.loops(copy)[2], "interleave_i8_16x4")
    with pytest.raises(ScheduleError, match="B_packed takes more of B_packed at once than one element"):
        s.transform_layout(copy, "B_packed", "a, b, c, d -> b, a, c, d")


@pytest.mark.parametrize("name", ["bias_relu", "conv2d", "blur", "row_sums", "symmetric", "stencil"])
def test_after_random_steps(name: str) -> None:
    """Whatever buffer of a random schedule is laid out anew, the results stay the same."""
    made = 0
    for seed in range(8):
        case, r = CASES[name](), random.Random(f"layout {name} {seed}")
        s = Schedule(case.program)
        for _ in range(6):
            step(s, r)
        for b in [x.buffer for x in statements(s.function.body) if isinstance(x, Alloc)]:
            names = [f"i{d}" for d in range(b.rank)]
            to = [f"{names[-1]} // 4", *names[:-1], f"{names[-1]} % 4"]
            users = [x for x in s.blocks() if s.buffer_of(x) is b]
            if not users:
                continue
            try:
                s.transform_layout(users[0], b.name, f"{', '.join(names)} -> {', '.join(to)}")
            except ScheduleError:  # that a loop may run in parallel is harder to tell now
                continue
            made += 1
            check(case, s.program, seed)
    assert made > 3
