"""The rewriter of statements: which method a kind goes to."""

from __future__ import annotations

from weft.loop import Stmt, parse_program, statements
from weft.lower.stmt_rewriter import StmtRewriter, Visited

TEXT = """\
def f(A: f32[4]):
    for i in range(0, 4):
        A[i] = 1.0
"""


class Seen(StmtRewriter):
    """Notes the statements that no method of its own takes."""

    def __init__(self) -> None:
        self.seen: list[Stmt] = []

    def default(self, s: Stmt) -> Visited:
        self.seen.append(s)
        return s


class IntoLoops(Seen):
    visit_for = StmtRewriter.visit_for


def test_kinds_without_a_method_go_to_the_default() -> None:
    body = parse_program(TEXT).functions[0].body
    loop, store = statements(body)
    outer, inner = Seen(), IntoLoops()
    assert outer.rewrite(body) is body
    assert outer.seen == [loop]
    assert inner.rewrite(body) is body
    assert inner.seen == [store]


def test_without_a_default_all_is_rebuilt() -> None:
    class Plain(StmtRewriter):
        pass

    body = parse_program(TEXT).functions[0].body
    assert Plain().rewrite(body) is body
