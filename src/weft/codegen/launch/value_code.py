"""Writes the values that a host program computes: code that leaves one number on the stack.

    max(n, 1) * 4     ->     GET n; CONST 1; MAX; CONST 4; MUL

Common subexpressions of a value are first put into locals. `And`, `Or` and `Select` compute one side only: loads that
occur on such a side alone are left there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from weft.codegen.launch.instruction_set import Op, instruction
from weft.ir import (
    INDEX,
    Add,
    And,
    BitAnd,
    BitOr,
    BitXor,
    Cast,
    Const,
    Eq,
    Expr,
    FloorDiv,
    FloorMod,
    Le,
    Lt,
    Max,
    Min,
    Mul,
    Ne,
    Neg,
    Node,
    Not,
    Or,
    Select,
    ShiftLeft,
    ShiftRight,
    Sub,
    TruncDiv,
    TruncMod,
    Var,
    post_order,
    reads_memory,
)
from weft.loop import Buffer, Load
from weft.support.errors import LoweringError

BINARY: Final[dict[type[Expr], Op]] = {
    Add: Op.ADD,
    Sub: Op.SUB,
    Mul: Op.MUL,
    FloorDiv: Op.FLOORDIV,
    FloorMod: Op.FLOORMOD,
    TruncDiv: Op.TRUNCDIV,
    TruncMod: Op.TRUNCMOD,
    Min: Op.MIN,
    Max: Op.MAX,
    BitAnd: Op.AND,
    BitOr: Op.OR,
    BitXor: Op.XOR,
    ShiftLeft: Op.SHL,
    ShiftRight: Op.SHR,
    Lt: Op.LT,
    Le: Op.LE,
    Eq: Op.EQ,
    Ne: Op.NE,
}

_ZERO, _ONE = instruction(Op.CONST, 0), instruction(Op.CONST, 1)


class Places(Protocol):
    """Where variables and buffers are."""

    def local(self, var: Var) -> int:
        """Returns the local of a variable."""

    def slot(self, buffer: Buffer) -> int:
        """Returns the slot of a buffer."""

    def fresh_local(self) -> int:
        """Returns a local that nothing else uses until the current statement is done."""


def value_code(root: Expr, places: Places) -> bytes:
    """Returns the code of a value."""
    made: dict[Node, bytes] = {}
    before = b""
    nodes = list(post_order(root))
    uses = Counter(k for n in nodes for k in n.children())
    always = _computed_always(root)
    for n in nodes:
        if not isinstance(n, Expr):
            continue
        code = _node_code(n, made, places)
        if uses[n] > 1 and not isinstance(n, Const | Var) and (n in always or not reads_memory(n)):
            where = places.fresh_local()
            before += code + instruction(Op.SET, where)
            code = instruction(Op.GET, where)
        made[n] = code
    return before + made[root]


def _computed_always(root: Expr) -> set[Node]:
    """Returns the nodes that are computed whichever sides of `And`, `Or` and `Select` are."""
    found: set[Node] = set()
    stack: list[Node] = [root]
    while stack:
        n = stack.pop()
        if n not in found:
            found.add(n)
            stack += n.children()[:1] if isinstance(n, And | Or | Select) else n.children()
    return found


def _node_code(n: Expr, made: Mapping[Node, bytes], places: Places) -> bytes:
    """Returns the code of one node, given that of those below it."""
    if isinstance(n, Const):
        return instruction(Op.CONST, int(n.value))
    if isinstance(n, Var):
        return instruction(Op.GET, places.local(n))
    if isinstance(n, Load):
        return made[n.indices[0]] + instruction(Op.LOAD, places.slot(n.buffer), n.buffer.dtype.code)
    write = _WRITERS.get(type(n))
    if write is not None:
        return write(n, *[made[k] for k in n.children() if isinstance(k, Expr)])
    if (op := BINARY.get(type(n))) is not None:
        a, b = n.children()
        return made[a] + made[b] + instruction(op)
    raise LoweringError(f"a host program computes no {type(n).__name__}", hint="hold it to verify_host first")


def chosen(cond: bytes, then: bytes, other: bytes) -> bytes:
    """Returns code that runs *then* where *cond* leaves a number that is not zero, else *other*."""
    if other:
        then += instruction(Op.SKIP, len(other))
    return cond + instruction(Op.SKIP_ZERO, len(then)) + then + other


def _cast(n: Cast, a: bytes) -> bytes:
    return a if n.dtype is INDEX else a + instruction(Op.CAST, n.dtype.code)


_WRITERS: Final[dict[type[Expr], Callable[..., bytes]]] = {
    And: lambda n, a, b: chosen(a, b, _ZERO),
    Or: lambda n, a, b: chosen(a, _ONE, b),
    Select: lambda n, cond, a, b: chosen(cond, a, b),
    Not: lambda n, a: a + _ZERO + instruction(Op.EQ),
    Neg: lambda n, a: _ZERO + a + instruction(Op.SUB),
    Cast: _cast,
}
