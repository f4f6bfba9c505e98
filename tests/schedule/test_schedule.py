"""`Schedule` itself: its queries, its methods and their stub."""

from __future__ import annotations

import ast
import gc
import inspect
import pickle
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.schedule.programs import CASES, matmul, symbolic_matmul

import weft.schedule
from weft.loop import Function, print_function
from weft.schedule import BlockRef, Schedule
from weft.schedule.cursors.primitive import PRIMITIVES
from weft.schedule.cursors.state import Illegal
from weft.schedule.methods import PrimitiveMethods
from weft.schedule.stubs import STUB, stub_text
from weft.support.errors import ScheduleError


def test_blocks_and_loops() -> None:
    s = Schedule(CASES["bias_relu"]().program)
    assert s.blocks() == (BlockRef("C"), BlockRef("D"), BlockRef("E"))
    assert [f.var.name for f in s.loops(s.block("C"))] == ["i", "j", "k"]
    assert s.buffer_of(s.block("D")).name == "D"


def test_extent() -> None:
    s = Schedule(symbolic_matmul().program)
    i, j, _ = s.loops(s.block("C"))
    assert (s.extent(i), s.extent(j)) == (None, 4)


def test_an_unknown_block_names_those_there_are() -> None:
    s = Schedule(matmul().program)
    with pytest.raises(ScheduleError, match="there is no block D in the program") as caught:
        s.block("D")
    assert caught.value.hint == "its blocks are: C"


def test_a_refused_step_changes_nothing() -> None:
    s = Schedule(matmul().program)
    before = s.program
    *_, k = s.loops(s.block("C"))
    with pytest.raises(ScheduleError):
        s.vectorize(k)
    assert s.program is before


def test_a_refused_step_is_in_no_cycle() -> None:
    """Rules try many: the programs that they refer to are free at once, not when the collector finds them."""
    s = Schedule(matmul().program)
    *_, k = s.loops(s.block("C"))
    gc.collect()
    gc.disable()
    try:
        with suppress(ScheduleError):
            s.vectorize(k)
        assert [e for e in gc.get_objects() if type(e) is Illegal] == []
    finally:
        gc.enable()


def test_a_refusal_is_printed_for_whoever_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules try steps and go on where they are refused: the text, which shows the program, is for people."""
    printed: list[Function] = []

    def noted(function: Function, *more: Any) -> str:
        printed.append(function)
        return print_function(function, *more)

    monkeypatch.setattr("weft.schedule.schedule.print_function", noted)
    s = Schedule(matmul().program)
    refused = s.function
    i, _, k = s.loops(s.block("C"))
    with pytest.raises(ScheduleError) as caught:
        s.vectorize(k)
    s.split(i, [None, 2])
    assert not printed
    text = str(caught.value)
    assert printed == [refused]
    assert text.startswith("vectorize(loop k) is not legal")
    assert str(caught.value) == str(pickle.loads(pickle.dumps(caught.value))) == text
    assert printed == [refused]


def test_every_primitive_is_a_method_with_its_documentation() -> None:
    for name, p in PRIMITIVES.items():
        method = getattr(Schedule, name)
        assert method.__doc__ == p.run.__doc__
        assert p.summary.endswith("."), name


def test_every_primitive_has_a_file_that_shows_it() -> None:
    for name, p in PRIMITIVES.items():
        module = inspect.getmodule(p.run)
        assert module is not None
        assert re.fullmatch(rf"weft\.schedule\.primitives\.\w+\.{name}", module.__name__)
        assert (module.__doc__ or "").startswith(f"`{name}`: ")
        assert "->" in (module.__doc__ or "")


def test_every_primitive_has_a_test(request: pytest.FixtureRequest) -> None:
    """The tests lie in rooms as the primitives do."""
    for name, p in PRIMITIVES.items():
        room = p.run.__module__.split(".")[-2]
        assert (request.path.parent / "primitives" / room / f"test_{name}.py").exists(), name


def test_every_refusal_says_what_would_be_legal() -> None:
    for path in Path(weft.schedule.__file__).parent.rglob("*.py"):
        for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "refuse":
                assert len(n.args) == 3 or any(k.arg == "hint" for k in n.keywords), f"{path}:{n.lineno}"


def test_the_stub_is_current() -> None:
    assert STUB.read_text(encoding="utf-8") == stub_text(), "run `python -m weft.schedule.stubs`"


def test_the_stub_declares_the_methods() -> None:
    declared = next(c for c in ast.parse(stub_text()).body if isinstance(c, ast.ClassDef))
    names = {f.name for f in declared.body if isinstance(f, ast.FunctionDef)}
    assert names == {"apply", *PRIMITIVES}


def test_methods_alone_have_nothing_to_apply_to() -> None:
    with pytest.raises(NotImplementedError):
        PrimitiveMethods().apply("split")
