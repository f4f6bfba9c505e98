"""Tensor instructions in flat programs written out as the loops of their semantics, for machines that do not have them."""

from __future__ import annotations

from weft.ir import ZERO, Expr, Node, Var, map_nodes, substitute
from weft.loop import Address, Block, Buffer, Call, For, Load, LoopKind, Program, Stmt, Store
from weft.lower import StmtRewriter
from weft.lower.stmt_rewriter import Visited
from weft.targets.instructions import INTRINSICS, TensorIntrinsic


def expand_instructions(program: Program) -> Program:
    """Returns *program* with loops in the place of tensor instructions: each thread computes what it is declared to."""
    return Program(tuple([f.with_body(_Expand().rewrite(f.body)) for f in program.functions]))


class _Expand(StmtRewriter):
    def visit_call(self, s: Call) -> Visited:
        known = INTRINSICS.get(s.callee)
        return s if known is None else _loops(known, s)


def _loops(known: TensorIntrinsic, call: Call) -> Stmt:
    given = dict(zip(known.semantics.params, call.args, strict=True))
    values: dict[Var, Expr] = {p: a for p, a in given.items() if isinstance(p, Var)}
    block = known.block
    fresh = [Var(f.var.name) for f in known.loops]
    axes: dict[Var, Expr] = {a.var: v for a, v in zip(block.axes, fresh, strict=True)}

    def place(b: Buffer, indices: tuple[Expr, ...]) -> tuple[Buffer, tuple[Expr, ...]]:
        address = given[b]
        assert isinstance(address, Address)
        assert b.strides is not None
        at = address.indices[0]
        for i, stride in zip(indices, b.strides, strict=True):
            at = at + substitute(i, axes) * substitute(stride, values)
        return address.buffer, (at,)

    def change(n: Node) -> Node | None:
        return Load(*place(n.buffer, n.indices)) if isinstance(n, Load) else None

    assert isinstance(block, Block)
    assert isinstance(block.body, Store)
    buffer, at = place(block.body.buffer, block.body.indices)
    made: Stmt = Store(buffer, at, map_nodes(block.body.value, change), None)
    for f, v in reversed(list(zip(known.loops, fresh, strict=True))):
        made = For(v, ZERO, f.extent, LoopKind.SERIAL, made, ())
    return made
