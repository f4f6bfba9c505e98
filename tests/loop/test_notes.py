"""Notes: read back from text, following the buffers that they name, and dropped where these are gone."""

from __future__ import annotations

import pytest

from weft.ir import ONE, ZERO, Var, index
from weft.loop import (
    Alloc,
    Buffer,
    DoubleBuffer,
    For,
    Function,
    LoopKind,
    Prefetch,
    Program,
    Stmt,
    UserNote,
    for_,
    parse_program,
    print_program,
    rename_fresh,
    replace_buffer,
    seq,
    store,
    verify,
    with_note,
    without_moot_notes,
)
from weft.loop.nodes import load
from weft.support.dtypes import f32
from weft.support.errors import ParseError

TEXT = """\
@function(kernel=1, may_alias=1, entry=("main", ("in0", "out0")), args="mine")
def f(A: f32[64], B: f32[64]):
    for b in bound(0, 8, thread="blockIdx.x"):
        for i in range(0, 8, prefetch=[(A, 2), (T, 1)], double_buffer=[T, U], grain=2, share=0.5):
            T = alloc("local", f32[8])
            U = alloc("local", f32[8])
            T[0] = A[i]
            U[0] = T[0]
            with block("C", v=spatial(64, b * 8 + i)):
                reads()
                writes(B[v])
                annotate(tensor="mma", cross_thread="threadIdx.x", why="hot")
                B[v] = 1.0
        for k in range(0, 8, prefetch=(B, 3)):
            A[k] = B[k]
"""


def loops(s: Stmt) -> list[For]:
    return (
        [s, *[f for k in s.bodies() for f in loops(k)]]
        if isinstance(s, For)
        else [f for k in s.bodies() for f in loops(k)]
    )


def test_every_class_reads_back() -> None:
    program = parse_program(TEXT)
    verify(program)
    assert print_program(program) == TEXT
    _, i, k = loops(program.entry.body)
    a, b = [p for p in program.entry.params if isinstance(p, Buffer)]
    assert isinstance(i.body, Alloc)
    assert i.notes[:3] == (Prefetch(a, 2), Prefetch(i.body.buffer, 1), DoubleBuffer(i.body.buffer))
    assert i.notes[-1] is UserNote("share", 0.5)
    assert k.notes == (Prefetch(b, 3),)


@pytest.mark.parametrize(
    ("notes", "message"),
    [
        ("prefetch=A", "the note prefetch has the fields (buffer, distance)"),
        ("prefetch=(A, 1, 2)", "the note prefetch has the fields (buffer, distance)"),
        ("prefetch=(A, 1.5)", "a field of the note prefetch is of type int, not `1.5`"),
        ("prefetch=(Z, 1)", "`Z` is not defined here"),
        ("double_buffer=T", "there are several buffers called T"),
        ("thread=0", "a field of the note thread is of type str, not `0`"),
        ("task=2", "the note task has no value: write task=1"),
        ("grain=[1, 2]", "the value of a note is a number or a string, not `[1, 2]`"),
    ],
)
def test_what_is_no_note_is_refused(notes: str, message: str) -> None:
    twice = "        with alloc('local', f32[8]) as T:\n            pass\n" * 2
    with pytest.raises(ParseError) as refused:
        parse_program(f"def main(A: f32[8]):\n    for i in range(0, 8, {notes}):\n{twice}")
    assert refused.value.message.startswith(message)


def test_notes_follow_their_buffers() -> None:
    a, b, t = Buffer("A", (8,), f32), Buffer("A", (8,), f32), Buffer("T", (8,), f32)
    i = Var("i")
    inner = Alloc(t, store(t, [i], load(a, i)))
    loop = For(i, ZERO, index(8), LoopKind.SERIAL, inner, (Prefetch(a, 1), DoubleBuffer(t)))
    assert replace_buffer(loop, {a: b}).notes == (Prefetch(b, 1), DoubleBuffer(t))
    copy = rename_fresh(loop)
    assert isinstance(copy, For)
    assert isinstance(copy.body, Alloc)
    assert copy.notes == (Prefetch(a, 1), DoubleBuffer(copy.body.buffer))
    verify(Program((Function("main", (a,), copy),)))


def test_a_new_note_takes_the_place_of_one_about_the_same() -> None:
    a, b = Buffer("A", (8,), f32), Buffer("B", (8,), f32)
    notes = with_note((Prefetch(a, 1), UserNote("x", 1), Prefetch(b, 1)), Prefetch(a, 4))
    assert notes == (UserNote("x", 1), Prefetch(b, 1), Prefetch(a, 4))
    assert with_note(notes, UserNote("x", 2)) == (Prefetch(b, 1), Prefetch(a, 4), UserNote("x", 2))


def test_moot_notes_are_dropped() -> None:
    """A buffer that is gone, one that is allocated elsewhere, and one of two places that is allocated outside."""
    a, gone, apart, inside = [Buffer(n, (8,), f32) for n in ("A", "gone", "apart", "inside")]
    notes = (
        Prefetch(a, 1),
        Prefetch(gone, 1),
        Prefetch(apart, 1),
        Prefetch(inside, 1),
        DoubleBuffer(inside),
        DoubleBuffer(a),
    )
    loop = For(Var("i"), ZERO, ONE, LoopKind.SERIAL, for_(Var("j"), 4, Alloc(inside, store(inside, [0], 0))), notes)
    f = Function("main", (a,), seq(loop, Alloc(apart, store(apart, [0], 0))))
    (cleaned, _) = loops(without_moot_notes(f).body)
    assert cleaned.notes == (Prefetch(a, 1), Prefetch(inside, 1), DoubleBuffer(inside))
    verify(Program((without_moot_notes(f),)))
    assert without_moot_notes(without_moot_notes(f)).body is without_moot_notes(f).body
