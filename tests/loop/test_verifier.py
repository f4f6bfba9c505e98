"""One broken program for each thing that the verifier says."""

from __future__ import annotations

import pytest

from weft.ir import ONE, TRUE, ZERO, Expr, Neg, Not, Var, const, index, node
from weft.loop import (
    NOTHING,
    Address,
    Alloc,
    Assert,
    Axis,
    AxisKind,
    Block,
    Buffer,
    Call,
    CrossThread,
    DoubleBuffer,
    Eval,
    For,
    Function,
    If,
    Let,
    Load,
    LoopKind,
    Note,
    Param,
    Prefetch,
    Program,
    Range,
    Region,
    Seq,
    Stmt,
    Store,
    TensorInstruction,
    Thread,
    UserNote,
    View,
    While,
    for_,
    make_block,
    parse_program,
    seq,
    store,
    verify,
)
from weft.loop.nodes import point
from weft.support.dtypes import DType, bool_, f32, i32
from weft.support.errors import VerifyError

A = Buffer("A", (8,), f32)
I, J, N = Var("i"), Var("j"), Var("n")  # noqa: E741
V = Axis(Var("v"), index(8), AxisKind.SPATIAL)


def message(body: Stmt, *params: Param, flat: bool = False) -> str:
    """The first line of what is said of a function with this body; the offending line is marked."""
    program = Program((Function("main", params or (A,), body),))
    with pytest.raises(VerifyError) as caught:
        verify(program, flat=flat)
    first, *shown = str(caught.value).splitlines()
    assert first.startswith("in main: ")
    assert not shown or any("# <-- here" in line for line in shown) or "def main" in shown[0]
    return first.removeprefix("in main: ")


def block(
    name: str = "b", axes: tuple[Axis, ...] = (V,), bindings: tuple[Expr, ...] = (ZERO,), **parts: object
) -> Block:
    fields: dict[str, object] = {
        "predicate": TRUE,
        "reads": (),
        "writes": (),
        "init": None,
        "body": NOTHING,
        "notes": (),
        **parts,
    }
    return Block(name, axes, bindings, **fields)  # type: ignore[arg-type]


def test_a_good_program_passes() -> None:
    verify(
        parse_program(
            "def main(A: f32[n, 8]):\n    for i in parallel(0, n):\n        f(A.at(i, 0), i)\n\n"
            "def f(B: f32[8], i: i64):\n    B[0] = f32(i)\n"
        )
    )


def test_the_whole_message_shows_where() -> None:
    program = parse_program("def main(A: f32[8]):\n    for i in range(0, 8):\n        A[i] = 0.0\n")
    loop = program.entry.body
    assert isinstance(loop, For)
    stray = program.with_function(program.entry.with_body(seq(loop.body, loop)))
    with pytest.raises(VerifyError) as caught:
        verify(stray)
    assert str(caught.value) == (
        "in main: the variable i is not in scope\n"
        "def main(A: f32[8]):\n"
        "    A[i] = 0.0  # <-- here\n"
        "    for i in range(0, 8):\n"
        "        A[i] = 0.0  # <-- here"
    )


def test_programs_and_functions() -> None:
    with pytest.raises(VerifyError, match=r"^a program has at least one function$"):
        verify(Program(()))
    with pytest.raises(VerifyError, match=r"^two functions are named f$"):
        verify(Program((Function("f", (), NOTHING), Function("f", (), NOTHING))))
    assert message(NOTHING, A, A) == "the parameter A is listed twice"


def test_scopes() -> None:
    loop = for_(I, 8, store(A, [I], 0))
    local = Buffer("t", (8,), f32)
    assert message(seq(loop, loop)) == "the variable i is bound twice"
    assert message(for_(N, 8, NOTHING), A, N) == "the variable n is bound twice"
    assert message(store(A, [I], 0)) == "the variable i is not in scope"
    assert message(seq(loop, Eval(I))) == "the variable i is not in scope"
    assert message(Let(I, I + 1, NOTHING)) == "the variable i is not in scope"
    assert message(store(local, [0], 0)) == "the buffer t is not in scope"
    assert message(Eval(Load(local, (ZERO,)))) == "the buffer t is not in scope"
    assert message(Eval(Address(local, (ZERO,)))) == "the buffer t is not in scope"
    assert message(seq(Alloc(local, store(local, [0], 0)), store(local, [1], 0))) == "the buffer t is not in scope"
    assert message(View(local, Buffer("s", (8,), f32), ZERO, NOTHING)) == "the buffer s is not in scope"
    assert message(Alloc(local, Alloc(local, NOTHING))) == "the buffer t is declared twice"
    assert message(Alloc(A, NOTHING)) == "the buffer A is declared twice"
    assert message(Alloc(Buffer("t", (I,), f32), NOTHING)) == "the variable i is not in scope"


def test_block_hides_the_variables_around_it() -> None:
    inside = make_block("b", (V,), (I,), store(A, [I], 0))
    assert message(for_(I, 8, inside)) == "the variable i is not in scope"
    uses = make_block("b", (V,), (I,), store(A, [V.var + N], 0))
    verify(Program((Function("main", (A, N), for_(I, 8, uses)),)))
    assert message(seq(block(), Eval(V.var))) == "the variable v is not in scope"


def test_types_of_statements() -> None:
    half, flag = const(0.5, f32), Var("c", bool_)
    narrow = Var("k", i32)
    assert message(for_(narrow, 8, NOTHING)) == "the loop variable k is of type i32, not i64"
    assert message(For(I, half, ONE, LoopKind.SERIAL, NOTHING, ())) == "the begin of a loop is of type f32, not i64"
    assert message(For(I, ZERO, half, LoopKind.SERIAL, NOTHING, ())) == "the extent of a loop is of type f32, not i64"
    assert message(If(N, NOTHING, None), A, N) == "a condition is a bool, not i64"
    assert message(While(N, NOTHING), A, N) == "a condition is a bool, not i64"
    assert message(Let(flag, ZERO, NOTHING)) == "the variable c is bool, but its value is i64"
    assert message(View(Buffer("t", (8,), f32), A, half, NOTHING)) == "the offset of a view is of type f32, not i64"
    wrong = Buffer("t", (8,), f32, strides=(half,))
    assert message(Alloc(wrong, NOTHING)) == "a size or stride of t is of type f32, not i64"
    wrong = Buffer("t", (8,), f32, strides=(1, 8))
    assert message(Alloc(wrong, NOTHING)) == "t has 1 dimensions, but 2 strides"
    assert message(Store(A, (ZERO,), half, ONE)) == "the mask of a store of f32 is i64"
    assert message(Eval(Not(half))) == "`not` does not take f32"
    assert message(Eval(Neg(TRUE))) == "`-` does not take bool"


def loop(*notes: Note, kind: LoopKind = LoopKind.SERIAL, body: Stmt = NOTHING) -> For:
    return For(I, ZERO, ONE, kind, body, notes)


def test_notes_once() -> None:
    twice = (UserNote("a", 1), UserNote("a", 2))
    assert message(loop(*twice)) == "the note a is given twice"
    assert message(block(notes=twice)) == "the note a is given twice"
    assert message(loop(Prefetch(A, 1), Prefetch(A, 2)), A) == "the note prefetch is given twice"
    verify(Program((Function("main", (A, N), loop(UserNote("a", 1), UserNote("b", 1), Prefetch(A, 1))),)))


def test_notes_stand_where_they_belong() -> None:
    assert message(loop(TensorInstruction("mma"))) == "the note tensor stands on a loop, but belongs on a block"
    assert message(block(notes=(Prefetch(A, 1),)), A) == "the note prefetch stands on a block, but belongs on a loop"
    with pytest.raises(VerifyError, match="the note thread stands on a function, but belongs on a loop"):
        verify(Program((Function("main", (), NOTHING, (Thread("threadIdx.x"),)),)))


def test_notes_make_sense() -> None:
    bound = LoopKind.BOUND
    assert message(loop(kind=bound)) == "a bound loop has a note of its thread axis"
    assert message(loop(Thread("warp"), kind=bound)) == "the note thread is wrong: 'warp' is no thread axis"
    said = "a loop with a note of its thread axis is bound, not of kind range"
    assert message(loop(Thread("threadIdx.x"))) == said
    said = "the note cross_thread is wrong: 'blockIdx.x' is no axis of the threads of a block"
    assert message(block(notes=(CrossThread("blockIdx.x"),))) == said
    said = "the note prefetch is wrong: 0 iterations before is not before"
    assert message(loop(Prefetch(A, 0)), A) == said
    assert message(loop(UserNote("task", 1))) == "the note task is wrong: task is the name of a note of Weft's own"


def test_notes_name_buffers_that_are_known() -> None:
    inside = Buffer("t", (8,), f32)
    body = Alloc(inside, NOTHING)
    assert message(loop(Prefetch(inside, 1))) == "the note prefetch names t, which is not known in the loop"
    assert message(loop(DoubleBuffer(A)), A) == "the note double_buffer names A, which is not declared in the loop"
    notes = (Prefetch(A, 1), Prefetch(inside, 2), DoubleBuffer(inside))
    verify(Program((Function("main", (A,), loop(*notes, body=body)),)))


def test_checks() -> None:
    assert message(Assert(N, "", ()), A, N) == "a condition is a bool, not i64"
    assert message(Assert(TRUE, "{0} {1}", (ZERO,))) == "the message of a check does not fit its 1 values"
    assert message(Assert(TRUE, "{", ())) == "the message of a check does not fit its 0 values"


def test_sequences_are_flat() -> None:
    one = store(A, [0], 0)
    said = "a sequence is flat and has two statements or more: build it by seq()"
    assert message(Seq((one,))) == said
    assert message(Seq((one, Seq((one, one))))) == said


def test_blocks() -> None:
    said = message(seq(block(), block(axes=(), bindings=())))
    assert said == "two blocks are named b"
    assert message(block(bindings=())) == "b has 1 axes, but 0 bindings"
    assert message(block(bindings=(const(1, i32),))) == "the binding of the axis v is of type i32, not i64"
    narrow = Axis(Var("v", i32), ONE, AxisKind.SPATIAL)
    assert message(block(axes=(narrow,))) == "the axis v is of type i32, not i64"
    odd = Axis(Var("v"), const(1, i32), AxisKind.SPATIAL)
    assert message(block(axes=(odd,))) == "the extent of the axis v is of type i32, not i64"
    assert message(block(predicate=ZERO)) == "a condition is a bool, not i64"


def test_regions() -> None:
    here, stray = (V.var,), Buffer("s", (8,), f32)
    assert message(block(reads=(point(stray, here),))) == "the buffer s is not in scope"
    assert message(block(reads=(Region(A, ()),))) == "a region of A has 0 dimensions"
    assert message(for_(I, 8, block(reads=(point(A, (I,)),)))) == "the variable i is not in scope"
    written = store(A, here, 0)
    assert message(block(body=written)) == "b writes A outside of the regions that it declares"
    reading = Eval(Load(A, here))
    assert message(block(body=reading)) == "b reads A outside of the regions that it declares"
    verify(Program((Function("main", (A,), block(body=reading, reads=(point(A, here),))),)))
    apart = Region(A, (Range(index(4), index(4)),))
    assert (
        message(block(body=store(A, [3], 0), writes=(apart,))) == "b writes A outside of the regions that it declares"
    )
    empty = Buffer("E", (0,), f32)
    nothing = block(body=for_(I, 0, store(empty, [I], 0)), writes=(Region(empty, (Range(index(0), index(0)),)),))
    verify(Program((Function("main", (empty,), nothing),)))


def test_calls_of_functions() -> None:
    def said(*args: Expr) -> str:
        callee = Function("f", (Buffer("B", (8,), f32), Var("k", i32)), NOTHING)
        with pytest.raises(VerifyError) as caught:
            verify(Program((Function("main", (A,), Call("f", args)), callee)))
        return str(caught.value).splitlines()[0]

    here = Address(A, (ZERO,))
    assert said(here) == "in main: f takes 2 arguments, not 1"
    assert said(ZERO, const(1, i32)) == "in main: f takes handle for B, not i64"
    assert said(here, ZERO) == "in main: f takes i32 for k, not i64"


def test_nodes_of_other_layers() -> None:
    @node
    class Foreign(Expr):
        """A node that loop programs do not know."""

        dtype: DType

    assert message(Eval(Foreign(f32))) == "a Foreign does not belong into a loop program"


def test_flat_form() -> None:
    verify(
        Program((Function("main", (A,), for_(I, N, store(A, [I], 0))),)).with_function(
            Function("main", (A, N), for_(I, N, store(A, [I], 0), LoopKind.SERIAL))
        ),
        flat=True,
    )
    assert message(block(), flat=True) == "a flat program has no blocks"
    for kind in (LoopKind.PARALLEL, LoopKind.VECTORIZED):
        assert message(for_(I, 8, NOTHING, kind), flat=True) == f"a flat program has no {kind.value} loop"
    unrolled = for_(I, N, NOTHING, LoopKind.UNROLLED)
    assert message(unrolled, A, N, flat=True) == "an unrolled loop has a constant number of iterations"
    said = "is not flat: a flat buffer has one dense dimension"
    assert message(NOTHING, Buffer("B", (2, 2), f32), flat=True) == f"B {said}"
    assert message(Alloc(Buffer("t", (), f32), NOTHING), flat=True) == f"t {said}"
    assert message(View(Buffer("t", (4,), f32, strides=(2,)), A, ZERO, NOTHING), flat=True) == f"t {said}"
