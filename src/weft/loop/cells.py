"""Variables of statements: a *cell* is a register that statements may set again, where a `Let` binds a value once.

    total = cell("total", f32)
    allocated([total], seq(put(total, 0.0), for_(i, n, put(total, get(total) + A[i]))))

becomes

    total = alloc("register", f32[1])
    total[0] = 0.0
    for i in range(0, n):
        total[0] = total[0] + A[i]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.ir import INDEX, ZERO, Expr, ExprLike, Var
from weft.loop.buffer import REGISTER, Buffer
from weft.loop.nodes import Alloc, Let, Load, Stmt, Store, store
from weft.support.dtypes import DType


def cell(name: str, dtype: DType = INDEX) -> Buffer:
    """Returns a register of *dtype*."""
    return Buffer(name, (1,), dtype, REGISTER)


def get(c: Buffer) -> Expr:
    """Returns the value of a cell, or the number in a vector of one."""
    return Load(c, (ZERO,))


def put(c: Buffer, value: ExprLike) -> Store:
    """Returns the statement that sets a cell, or the number in a vector of one."""
    return store(c, (ZERO,), value)


def allocated(buffers: Sequence[Buffer], body: Stmt) -> Stmt:
    """Returns *body* with memory for *buffers*, the first outermost."""
    for b in reversed(buffers):
        body = Alloc(b, body)
    return body


def let(name: str, value: Expr, body: Callable[[Expr], Stmt]) -> Let:
    """Returns the statement that *body* builds on a variable bound to *value*, which is so computed once."""
    v = Var(name, value.dtype)
    return Let(v, value, body(v))
