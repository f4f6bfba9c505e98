"""The text of programs, with one example of everything, and what is refused when read."""

from __future__ import annotations

import pytest

from weft.ir import TRUE, Add, Var, index
from weft.loop import (
    NOTHING,
    Block,
    Buffer,
    For,
    Function,
    LoopKind,
    Program,
    Range,
    UserNote,
    canonical_text,
    parse_program,
    print_function,
    print_program,
    print_stmt,
    seq,
    statements,
    store,
    verify,
)
from weft.loop.nodes import load
from weft.loop.parser import parse_stmt
from weft.loop.printer import end_of, excerpt, extent_of
from weft.support.dtypes import f32
from weft.support.errors import ParseError

EVERYTHING = """\
@function("kernel 1", target="cpu", **{"a.b": 2})
def kernel_1_(A: f32[64, n], B: f32[n], C: buffer("local", f32[64], strides=(2,)), m: i64, S: f32[()]):
    for i in parallel(0, 64):
        with alloc("local", f32[4], strides=(2,)) as tmp:
            tmp[0] = 1.0
        with let(exp(A[0, 1])) as y:
            S[()] = y
        for k in range(0, n, pragma=1, limit=1e999, **{"x y": "z"}):
            with block("C", vi=spatial(64, i), vk=reduce(n, k), vt=ordered(4, 0), vo=opaque(1, 0), where=(i < m)):
                reads(A[vi, vk], B[0:4], C[vi:vi + 3])
                writes(C[vi])
                annotate(f=1.5, on=True)
                with init():
                    C[vi] = 0.0
                C[vi] = C[vi] + A[vi, vk] * B[vk]
        acc = alloc("register", f32[4])
        x = let(i + m)
        if i < 3:
            S[()] = 1.0
        elif i == 4:
            pass
        else:
            while A[0, 0] < 1.0:
                A.store(0, ramp(0, 1, 4), value=broadcast(1.0, 4), mask=broadcast(True, 4))
        v = view(C, i * 3, i32[4, 4], strides=(8, 1), scope="shared")
        w = view(C, 0, f32[4])
        for j in unrolled(1, 4):
            for l in vectorized(i + 1, i + 1 + m):
                other(v.at(1, 2), w.at(0), x)
        call("async.copy", i8(3))
        check(i < 2, "bad \\"{0}\\"\\n", i)
        eval_(acc[0])

def other(B: i32[4], C: f32[4], n: i64):
    pass
"""


def test_everything_reads_back() -> None:
    program = parse_program(EVERYTHING)
    verify(program)
    assert print_program(program) == EVERYTHING
    assert program.entry.name == "kernel 1"
    assert program.entry.notes == (UserNote("target", "cpu"), UserNote("a.b", 2))
    assert str(program) == repr(program) == EVERYTHING
    assert str(program["other"]) == "def other(B: i32[4], C: f32[4], n: i64):\n    pass\n"


def test_names_of_one_function_are_all_different() -> None:
    text = """\
def main(A: f32[8]):
    for i in range(0, 8):
        A[i] = 0.0
    for i in range(0, 8):
        A[i] = 1.0
    A_1 = alloc("local", f32[8])
    for A in range(0, 8):
        A_1[A] = 0.0
"""
    assert (
        print_program(parse_program(text))
        == """\
def main(A: f32[8]):
    for i in range(0, 8):
        A[i] = 0.0
    for i_1 in range(0, 8):
        A[i_1] = 1.0
    A_1 = alloc("local", f32[8])
    for A_2 in range(0, 8):
        A_1[A_2] = 0.0
"""
    )


def test_regions_are_derived_where_they_are_not_written() -> None:
    text = 'def main(A: f32[8], C: f32[8]):\n    with block("C", v=spatial(8, 3)):\n        C[v] = A[v]\n'
    assert "reads(A[v])\n        writes(C[v])" in print_program(parse_program(text))


def test_parallel_loops_of_one_name_shadow_nothing() -> None:
    a = Buffer("A", (8,), f32)
    made = parse_stmt(
        "for i in range(0, 2):\n    x = let(i)\n    for i in range(0, 4):\n        A[i] = f32(x)", {"A": a}
    )
    outer, _, inner, last = statements(made)
    assert isinstance(outer, For)
    assert isinstance(inner, For)
    assert outer.var is not inner.var
    assert last is store(a, [inner.var], last.value)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("begin", "extent"),
    [
        (index(0), index(0) + 5),
        (index(2), index(5)),
        (index(-2), index(1)),
        (Var("n"), index(4)),
        (Var("n") + 1, Var("m") + 1),
        (index(2), Var("m")),
        (index(2), Add(index(2), index(3))),
        (index(0), Add(index(0), Var("m"))),
    ],
    ids=str,
)
def test_extent_is_found_from_the_end(begin: Var, extent: Var) -> None:
    assert extent_of(begin, end_of(begin, extent)) is extent


def test_mark_points_at_a_statement_or_at_what_contains_an_expression() -> None:
    program = parse_program("def main(A: f32[8]):\n    for i in range(0, 8):\n        A[i] = 1.0 + A[i]\n")
    loop = program.entry.body
    assert isinstance(loop, For)
    value = loop.body.value  # type: ignore[attr-defined]
    inner = "def main(A: f32[8]):\n    for i in range(0, 8):\n        A[i] = 1.0 + A[i]  # <-- here\n"
    assert print_function(program.entry, mark=loop.body) == inner
    assert print_function(program.entry, mark=value.b) == inner
    assert print_stmt(loop, mark=loop) == "for i in range(0, 8):  # <-- here\n    A[i] = 1.0 + A[i]\n"


def test_excerpt_of_a_long_function() -> None:
    a = Buffer("A", (100,), f32)
    f = Function("main", (a,), seq(*[store(a, [k], 1) for k in range(100)]))
    lines = excerpt(f, store(a, [50], 1), around=2).splitlines()
    assert lines == [
        "def main(A: f32[100]):",
        "    A[0] = 1.0",
        "    A[1] = 1.0",
        "    ...",
        "    A[48] = 1.0",
        "    A[49] = 1.0",
        "    A[50] = 1.0  # <-- here",
        "    A[51] = 1.0",
        "    A[52] = 1.0",
        "    ...",
    ]


def test_a_broken_block_can_still_be_printed() -> None:
    broken = Block("b", (), (index(3),), TRUE, (), (), None, NOTHING, ())
    assert print_stmt(broken) == 'with block("b"):\n    reads()\n    writes()\n    pass\n'


def test_deep_bindings_do_not_nest() -> None:
    lets = "".join([f"    x{k} = let({f'x{k - 1}' if k else 0} + 1)\n" for k in range(2000)])
    program = parse_program(f"def main(A: i64[1]):\n{lets}    A[0] = x1999\n")
    assert print_program(program).count("\n") == 2002
    verify(program)


def body(*lines: str) -> str:
    return "def main(A: f32[8, 8], n: i64):\n" + "".join([f"    {x}\n" for x in lines])


STATEMENTS = (
    "a loop, while, if, A[i] = value, x = let(value), x = alias(value), b = alloc(scope, type), v = view(source, offset, type), "
    "with block(...), check(cond, message), eval_(value) or f(args)"
)
ERRORS = [
    ("", "line 1, column 1: expected at least one function, as in `def main(A: f32[8]):`"),
    ("x = 3", "line 1, column 1: expected a function, as in `def main(A: f32[8]):`\n    x = 3\n    ^"),
    ("def main(A):\n  pass", "line 1, column 10: the parameter A has no type\n    def main(A):\n             ^"),
    ("def main(*A):\n  pass", "line 1, column 1: parameters are plain names with types\n    def main(*A):\n    ^"),
    (
        "def main(A: g32[8]):\n  pass",
        "line 1, column 13: expected a type such as f32 or i8x16, not `g32`\n    def main(A: g32[8]):\n                ^",
    ),
    (
        "def main(A: 3):\n  pass",
        "line 1, column 10: expected a type such as i64 or f32[8, n] for the parameter A\n    def main(A: 3):\n             ^",
    ),
    ("@f\ndef main():\n  pass", "line 1, column 2: expected @function(...)\n    @f\n     ^"),
    (
        body("return 3"),
        "line 2, column 5: expected a statement of the loop language, not `return 3`\n        return 3\n        ^\n"
        f"  hint: {STATEMENTS}",
    ),
    (
        body("n += 3"),
        "line 2, column 5: expected a statement of the loop language, not `n += 3`\n        n += 3\n        ^\n"
        f"  hint: {STATEMENTS}",
    ),
    (
        body("A.fill(3)"),
        "line 2, column 5: expected a statement of the loop language, not `A.fill(3)`\n        A.fill(3)\n        ^\n"
        f"  hint: {STATEMENTS}",
    ),
    (
        body("x = foo(3)"),
        "line 2, column 9: expected let(value), alloc(scope, type) or view(source, offset, type), not `foo(3)`\n"
        "        x = foo(3)\n            ^",
    ),
    (
        body("A[0] = 1.0"),
        "line 2, column 5: A has 2 dimensions, but 1 indices were given\n        A[0] = 1.0\n        ^",
    ),
    (
        body("A[0, 0] = 1"),
        "line 2, column 5: a store to A takes f32, not i64\n        A[0, 0] = 1\n        ^\n  hint: cast it",
    ),
    (body("B[0] = 1.0"), "line 2, column 5: `B` is not defined here\n        B[0] = 1.0\n        ^"),
    (body("n[0] = 1.0"), "line 2, column 5: `n` is not a buffer\n        n[0] = 1.0\n        ^"),
    (
        body("A[0, 0] = A"),
        "line 2, column 15: `A` is not a variable\n        A[0, 0] = A\n                  ^\n"
        "  hint: write A[...] for an element of it",
    ),
    (
        body("eval_((A + 1)[0])"),
        "line 2, column 12: expected the name of a buffer, not `A + 1`\n        eval_((A + 1)[0])\n               ^",
    ),
    (body("if n:", "  pass"), "line 2, column 8: a condition is a bool, not i64\n        if n:\n           ^"),
    (
        body("for i in n:", "  pass"),
        "line 2, column 14: expected one of range, parallel, vectorized, unrolled, bound, called with (begin, end)\n"
        "        for i in n:\n                 ^",
    ),
    (
        body("for i in range(0, 3, note=n):", "  pass"),
        "line 2, column 31: expected a constant, not `n`\n"
        "        for i in range(0, 3, note=n):\n                                  ^",
    ),
    (
        body('b = alloc("local", f32)'),
        "line 2, column 24: expected the type of a buffer, such as f32[8, 8], not `f32`\n"
        '        b = alloc("local", f32)\n                           ^',
    ),
    (
        body('b = alloc("local", f32[2], strides=(1, 2))'),
        "line 2, column 24: 1 dimensions have 1 strides, not 2\n"
        '        b = alloc("local", f32[2], strides=(1, 2))\n                           ^',
    ),
    (
        body('b = alloc("local", f32[2], step=1)'),
        "line 2, column 32: expected strides= or scope=, not `step`\n"
        '        b = alloc("local", f32[2], step=1)\n                                   ^',
    ),
    (
        body("b = alloc(n, f32[2])"),
        "line 2, column 15: expected a string, not `n`\n        b = alloc(n, f32[2])\n                  ^",
    ),
    (
        body("with block():", "  pass"),
        'line 2, column 5: a block has a name, as in block("C", vi=spatial(8, i))\n        with block():\n        ^',
    ),
    (
        body('with block("b", i=n):', "  pass"),
        "line 2, column 21: expected one of spatial, reduce, ordered, unordered, opaque, called with (extent, binding)\n"
        '        with block("b", i=n):\n                        ^',
    ),
    (
        body('with block("b"):', "  reads(n)"),
        "line 3, column 13: expected a region such as A[0:4, i], not `n`\n          reads(n)\n                ^",
    ),
    (
        body('with block("b"):', "  reads(A[0])"),
        "line 3, column 13: A has 2 dimensions, not 1\n          reads(A[0])\n                ^",
    ),
    (
        body('with block("b"):', "  reads(A[0:, 0])"),
        "line 3, column 15: a range has a begin and an end, and no step\n          reads(A[0:, 0])\n                  ^",
    ),
    (body("é = let(z)"), "line 2, column 13: `z` is not defined here\n        é = let(z)\n                ^"),
]


@pytest.mark.parametrize(
    ("text", "message"), ERRORS, ids=[t.splitlines()[-1].strip() if t else "empty" for t, _ in ERRORS]
)
def test_error(text: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_program(text)
    assert str(caught.value) == message


def test_kinds_of_loops() -> None:
    a = Buffer("A", (8,), f32)
    for kind in LoopKind:
        made = For(Var("i"), index(0), index(8), kind, NOTHING, ())
        assert print_stmt(made).startswith(f"for i in {kind.value}(0, 8):")
        assert parse_stmt(print_stmt(made), {"A": a}).kind is kind  # type: ignore[attr-defined]


def test_a_loop_may_name_its_end_alone() -> None:
    assert print_stmt(parse_stmt("for i in range(8):\n    pass", {})) == "for i in range(0, 8):\n    pass\n"


def test_parts_of_blocks_have_a_text() -> None:
    made = parse_stmt('with block("b", v=reduce(8, 0)):\n    reads(A[v, 0:4])', {"A": Buffer("A", (8, 8), f32)})
    assert isinstance(made, Block)
    assert (repr(made.axes), repr(made.reads)) == ("(v=reduce(8),)", "(A[v, 0:4],)")


def test_a_range_of_one_is_an_index() -> None:
    made = parse_stmt('with block("b"):\n    reads(A[3:4])\n    writes()', {"A": Buffer("A", (8,), f32)})
    assert isinstance(made, Block)
    assert made.reads[0].ranges == (Range(index(3), index(1)),)
    assert Program((Function("f", (), made),)).entry.name == "f"


def test_text_of_values_that_are_used_again_and_again_is_linear_and_reads_back() -> None:
    a, b, i = Buffer("A", (64,), f32), Buffer("B", (64,), f32), Var("i")
    value = load(a, i)
    for _ in range(60):
        value = value * value + 1.0
    body = seq(store(b, [i], value), store(a, [i], value))
    f = Function("main", (a, b), For(i, index(0), index(64), LoopKind.SERIAL, body, ()), ())
    text = print_function(f)
    assert len(text) < 100_000
    assert text.count(" = alias(") > 2
    again = parse_program(text)
    verify(again)
    assert canonical_text(again) == canonical_text(Program((f,)))
    assert print_program(again) == text


def test_an_alias_names_a_part_of_an_expression_in_the_rest_of_the_suite() -> None:
    text = "p = alias(A[0] + 1.0)\nA[1] = p * p\n"
    a = Buffer("A", (4,), f32)
    part = load(a, 0) + 1.0
    assert parse_stmt(text, {"A": a}) is store(a, [1], part * part)
