"""The outline of a statement says what is under it, and does not keep it alive."""

from __future__ import annotations

import gc
import weakref

from weft.ir import Var, index
from weft.loop import (
    Alloc,
    Buffer,
    For,
    LoopKind,
    Prefetch,
    Stmt,
    for_,
    mentioned,
    outline,
    parse_program,
    replace_buffer,
    seq,
    statements,
    store,
    sub_statements,
)
from weft.loop.nodes import load
from weft.support.dtypes import f32

A, B, T = Buffer("a", [8], f32), Buffer("b", [8], f32), Buffer("t", [8], f32, "local")


def nest(notes: tuple[Prefetch, ...] = ()) -> tuple[Stmt, list[For]]:
    i, j, k = Var("i"), Var("j"), Var("k")
    first = For(i, index(0), index(8), LoopKind.SERIAL, store(T, [i], load(A, i)), notes)
    second = for_(j, 8, store(B, [j], load(T, j)))
    last = for_(k, 8, store(B, [k], 1.0))
    return Alloc(T, seq(first, second, last)), [first, second, last]


def test_loops_come_in_program_order() -> None:
    root, loops = nest()
    assert list(outline(root).loops_and_blocks) == loops
    assert outline(root).names == {T, *[f.var for f in loops]}
    assert outline(loops[0]).loops_and_blocks == ()
    assert outline(loops[0]).names == {loops[0].var}


def test_buffers_that_are_allocated_inside_are_not_used_from_outside() -> None:
    program = parse_program("""
def main(a: f32[8], b: f32[8]):
    t = alloc("local", f32[8])
    for i in range(0, 8):
        with block("t", v=spatial(8, i)):
            t[v] = a[v]
    for j in range(0, 8):
        with block("b", v=spatial(8, j)):
            b[v] = t[v]
""")
    body = program.entry.body
    assert isinstance(body, Alloc)
    assert {b.name for b in outline(body).used} == {"a", "b"}
    assert {b.name for b in outline(body.body).used} == {"a", "b", "t"}
    assert [{b.name for b in outline(f).used} for f in sub_statements(body.body)] == [{"a", "t"}, {"t", "b"}]


def test_notes_are_those_of_any_loop() -> None:
    assert not outline(nest()[0]).has_notes
    assert outline(nest((Prefetch(B, 1),))[0]).has_notes


def test_buffers_that_notes_name_are_mentioned() -> None:
    plain, noted = nest()[1][0], nest((Prefetch(B, 1),))[1][0]
    assert mentioned(plain) == {T, A}
    assert mentioned(noted) == {T, A, B}


def test_statements_without_the_buffer_stay_when_it_is_replaced() -> None:
    root, loops = nest((Prefetch(T, 1),))
    made = replace_buffer(root, {T: Buffer("u", [8], f32, "register")})
    assert loops[2] in list(statements(made))
    assert T in mentioned(root)
    assert T not in mentioned(made)


def test_a_statement_does_not_keep_itself_alive() -> None:
    root, loops = nest()
    outline(root), mentioned(root)
    alive = weakref.ref(root)
    gc.disable()
    try:
        del root, loops
        assert alive() is None
    finally:
        gc.enable()
