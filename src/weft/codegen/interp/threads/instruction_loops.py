"""Writes calls of tensor instructions as the loops that declare them, for interpreters of flat programs.

    call("warp.mma_f16", C.at(c), A.at(a), B.at(b), tc, ta, ua, tb, ub)

becomes the instruction's semantics, with each access of a parameter at its place in the flat memory of the operand.
"""

from __future__ import annotations

from weft.ir import Expr, Node, Var, map_nodes, substitute
from weft.loop import Address, Block, Buffer, Call, Load, Program, Stmt, Store, map_stmts, rename_fresh
from weft.targets.instructions import INTRINSICS


def with_instruction_loops(program: Program) -> Program:
    """Returns *program*, which is flat, without calls of tensor instructions."""
    return Program(tuple([f.with_body(map_stmts(f.body, _loops_of_call)) for f in program.functions]))


def _loops_of_call(s: Stmt) -> Stmt | None:
    known = INTRINSICS.get(s.callee) if isinstance(s, Call) else None
    if known is None or not isinstance(s, Call):
        return None
    given = dict(zip(known.semantics.params, s.args, strict=True))
    operands = {p: a for p, a in given.items() if isinstance(p, Buffer) and isinstance(a, Address)}
    numbers = {p: a for p, a in given.items() if isinstance(p, Var)}

    def change(n: Node) -> Node | None:
        if isinstance(n, Block):
            return substitute(n.body, dict(zip([a.var for a in n.axes], n.bindings, strict=True)))
        if isinstance(n, Load):
            return Load(operands[n.buffer].buffer, _place(operands, numbers, n))
        if isinstance(n, Store):
            return Store(operands[n.buffer].buffer, _place(operands, numbers, n), n.value, n.mask)
        return None

    return map_nodes(rename_fresh(known.semantics.body), change)


def _place(operands: dict[Buffer, Address], numbers: dict[Var, Expr], access: Load | Store) -> tuple[Expr]:
    (place,) = operands[access.buffer].indices
    for i, stride in zip(access.indices, access.buffer.row_major_strides(), strict=True):
        place = place + i * substitute(stride, numbers)
    return (place,)
