"""The accesses of a local buffer where stores alone use it, each in its context: the masks, guards and loops around it."""

from __future__ import annotations

from dataclasses import dataclass

from weft.ir import Expr, conjuncts
from weft.loop import Buffer, For, If, Stmt, Store, loads, own_buffers, sub_statements


@dataclass(frozen=True)
class StoreAccess:
    """A store that reads or writes a flat buffer at *indices*, under *guards*, inside *loops*, outermost first."""

    store: Store
    indices: tuple[Expr, ...]
    guards: tuple[Expr, ...]
    loops: tuple[For, ...]


def store_accesses(body: Stmt, buffer: Buffer) -> list[StoreAccess] | None:
    """Returns the stores in *body* that use *buffer*.

    None where another statement uses it, an index of a store reads it, or it has other than one dimension.
    """
    if len(buffer.shape) != 1:
        return None
    found: list[StoreAccess] = []
    stack: list[tuple[Stmt, tuple[Expr, ...], tuple[For, ...]]] = [(body, (), ())]
    while stack:
        s, guards, loops = stack.pop()
        if isinstance(s, Store):
            if any(x.buffer is buffer for i in s.indices for x in loads(i)):
                return None
            if indices := _indices(s, buffer):
                found.append(StoreAccess(s, indices, guards, loops))
        elif buffer in own_buffers(s):
            return None
        elif isinstance(s, If):
            stack.append((s.then, (*guards, *conjuncts(s.cond)), loops))
            stack += [] if s.other is None else [(s.other, guards, loops)]
        else:
            stack += [(x, guards, (*loops, s) if isinstance(s, For) else loops) for x in sub_statements(s)]
    return found


def _indices(s: Store, buffer: Buffer) -> tuple[Expr, ...]:
    """Returns the distinct indices at which a store loads and stores the elements of *buffer*."""
    used = [x.indices[0] for x in loads(s.value) if x.buffer is buffer] + [s.indices[0]] * (s.buffer is buffer)
    return tuple(dict.fromkeys(used))
