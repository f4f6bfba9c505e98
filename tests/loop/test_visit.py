"""Walking and rebuilding statements."""

from __future__ import annotations

from weft.ir import Const, Var, print_expr, reads_memory
from weft.loop import (
    Alloc,
    Buffer,
    Eval,
    For,
    Let,
    Load,
    Stmt,
    Store,
    View,
    bound_vars,
    buffers_of,
    is_same,
    loads,
    map_stmts,
    own_exprs,
    parse_program,
    rename_fresh,
    replace_buffer,
    seq,
    statements,
    store,
    stores,
    sub_statements,
    verify,
)
from weft.loop.alpha_equivalence import check_same
from weft.support.dtypes import f32, i64

PROGRAM = parse_program(
    """
def main(A: f32[8], B: f32[8], I: i64[8]):
    for i in range(0, 8):
        t = alloc("local", f32[i])
        v = view(B, i, f32[4], strides=(i,))
        with block("b", x=spatial(8, i)):
            with init():
                A[x] = 0.0
            A[x] = A[x] + B[I[x]]
        k = let(t[0])
        if k < 1.0:
            v[0] = k
"""
)
BODY = PROGRAM.entry.body


def test_statements_come_in_program_order() -> None:
    kinds = [type(s).__name__ for s in statements(BODY)]
    assert kinds == ["For", "Alloc", "View", "Seq", "Block", "Store", "Store", "Let", "If", "Store"]
    assert [type(s).__name__ for s in sub_statements(BODY)] == ["Alloc"]


def test_accesses() -> None:
    assert [x.buffer.name for x in loads(BODY)] == ["A", "I", "B", "t"]
    assert [x.buffer.name for x in stores(BODY)] == ["A", "A", "v"]
    assert {b.name for b in buffers_of(BODY)} == {"A", "B", "I", "t", "v"}


def test_what_depends_on_memory() -> None:
    i, b = Var("i"), Buffer("B", [8], i64)
    inside = Load(b, (i,)) + 1
    for _ in range(2):  # the second answer is remembered
        assert reads_memory(inside * 2)
        assert not reads_memory(i * 2 + 1)
    assert loads(i + 1) == []
    assert loads(Load(b, (inside,))) == [Load(b, (i,)), Load(b, (inside,))]


def test_own_parts() -> None:
    assert [v.name for s in statements(BODY) for v in bound_vars(s)] == ["i", "x", "k"]
    assert [[print_expr(e) for e in own_exprs(s)] for s in statements(BODY)][:5] == [
        ["0", "8"],
        [],
        ["i"],
        [],
        ["8", "i", "True"],
    ]


def test_map_changes_statements_bottom_up() -> None:
    seen: list[str] = []

    def drop_stores(s: Stmt) -> Stmt | None:
        seen.append(type(s).__name__)
        return Eval(s.value) if isinstance(s, Store) and isinstance(s.value, Const) else None

    changed = map_stmts(BODY, drop_stores)
    assert seen[-1] == "For"
    assert [x.buffer.name for x in stores(changed)] == ["A", "v"]
    assert map_stmts(BODY, lambda s: None) is BODY


def test_replacing_a_buffer_reaches_every_place() -> None:
    old = {b.name: b for b in buffers_of(BODY)}
    new = {old[n]: Buffer(n.lower() + "2", old[n].shape, old[n].dtype) for n in old}
    names = {b.name for b in buffers_of(replace_buffer(BODY, new))}
    assert names == {"a2", "b2", "i2", "t2", "v2"}
    assert replace_buffer(BODY, {}) is BODY


def test_a_fresh_copy_may_stand_beside_the_original() -> None:
    loop = parse_program(
        'def main(A: f32[8]):\n    for i in range(0, 8):\n        t = alloc("local", f32[i])\n        A[i] = t[0]\n'
    )
    copy = rename_fresh(loop.entry.body)
    assert is_same(copy, loop.entry.body)
    verify(loop.with_function(loop.entry.with_body(seq(loop.entry.body, copy))))
    assert is_same(rename_fresh(BODY), BODY)
    inside = [s for s in statements(rename_fresh(BODY)) if isinstance(s, For | Let | Alloc | View)]
    bound = {
        s.var if isinstance(s, For | Let) else s.buffer
        for s in statements(BODY)
        if isinstance(s, For | Let | Alloc | View)
    }
    assert not bound & {s.var if isinstance(s, For | Let) else s.buffer for s in inside}


def test_sizes_of_renamed_buffers_follow_their_loops() -> None:
    copy = rename_fresh(BODY)
    assert isinstance(copy, For)
    alloc = copy.body
    assert isinstance(alloc, Alloc)
    assert alloc.buffer.shape == (copy.var,)
    view = alloc.body
    assert isinstance(view, View)
    assert view.buffer.strides == (copy.var,)
    check_same(copy, BODY)
    assert store(Buffer("x", (1,), f32), [0], 1).mask is None
