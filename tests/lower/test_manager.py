"""Running passes: errors say where they come from, and a crash can be run again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import pytest

from weft.ir import Var
from weft.loop import Buffer, Function, Program, parse_program, print_program, store
from weft.lower import PASSES, reproduce, run_passes
from weft.lower.loops.vectorize import vectorize
from weft.lower.manager import save_reproducer
from weft.support.errors import LoweringError, VerifyError
from weft.support.knobs import Switches
from weft.support.passes import Pass, alone
from weft.targets import cpu

TARGET = cpu("avx512")
TEXT = """def main(C: f32[4]):
    for i in range(0, 4):
        C[i] = 1.0
"""


def crash(program: Program) -> Program:
    raise ZeroDivisionError("nothing to divide")


def break_scope(program: Program) -> Program:
    c = program.entry.params[0]
    assert isinstance(c, Buffer)
    return Program((Function("main", (c,), store(c, [Var("stray")], 0.0)),))


def nothing(program: Program) -> Program:
    return program


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def saved_file(error: LoweringError) -> str:
    found = re.search(r"is in (\S+);", str(error.hint))
    assert found
    return found[1]


def test_a_crash_names_the_pass_and_leaves_a_file_to_run_it_again() -> None:
    passes = [Pass("nothing", alone(nothing)), Pass("crash", alone(crash))]
    with pytest.raises(LoweringError, match=r"the pass failed .ZeroDivisionError.: nothing to divide") as caught:
        run_passes(passes, parse_program(TEXT), TARGET)
    assert caught.value.where == "pass crash"
    path = saved_file(caught.value)
    assert Path(path).read_text() == f"# pass: crash\n# target: cpu -mattr=avx512\n{TEXT}"
    with pytest.raises(ZeroDivisionError):
        reproduce(path, passes, TARGET)
    with pytest.raises(LoweringError, match="there is no pass crash"):
        reproduce(path, PASSES, TARGET)


def test_a_lack_of_memory_is_no_crash_of_a_pass(tmp_path: Path) -> None:
    def greedy(program: Program) -> Program:
        raise MemoryError("Unable to allocate 1 EiB")

    with pytest.raises(MemoryError, match="1 EiB"):  # which the command tells in words
        run_passes([Pass("greedy", alone(greedy))], parse_program(TEXT), TARGET)
    assert not list(tmp_path.iterdir())


def test_a_pass_that_breaks_a_program_is_named() -> None:
    passes = [Pass("break_scope", alone(break_scope))]
    with pytest.raises(LoweringError, match=r"left a program that breaks its rules.*stray") as caught:
        run_passes(passes, parse_program(TEXT), TARGET, verify=True)
    with pytest.raises(VerifyError):
        reproduce(saved_file(caught.value), passes, TARGET)


def test_a_pass_that_works_again_gives_its_program(tmp_path: Path) -> None:
    path = tmp_path / "saved.txt"
    path.write_text(f"# pass: nothing\n# target: cpu -mattr=avx512\n{TEXT}", encoding="utf-8")
    assert print_program(reproduce(path, [Pass("nothing", alone(nothing))], TARGET)) == TEXT


def test_a_vectorized_reduction_is_refused() -> None:
    text = """
def main(A: f32[8], C: f32[1]):
    for i in vectorized(0, 8):
        C[0] = C[0] + A[i]
"""
    with pytest.raises(LoweringError) as caught:
        vectorize(parse_program(text), TARGET)
    assert str(caught.value) == (
        "the iterations of the vectorized loop i all write the same element of C\n"
        "  hint: vectorize a loop over a spatial axis, or rfactor the reduction"
    )


def test_a_reproducer_holds_the_settings_of_passes(tmp_path: Path) -> None:
    switches = Switches(passes=("failing.twice=true", "other=off"))
    path = save_reproducer(tmp_path, "failing", parse_program(TEXT), TARGET, switches)
    asked: list[bool] = []

    def note(program: Program, *, twice: Annotated[bool, "whether it was asked"] = False) -> Program:
        asked.append(twice)
        return program

    reproduce(path, [Pass("failing", alone(note))], TARGET)
    assert asked == [True]
