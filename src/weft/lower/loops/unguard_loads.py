"""Hoists loads that certainly lie inside their buffer out of a vector's condition, so that they need no mask.

    y[ramp(8 * i, 1, 8)] = select(           a = let(x[ramp(8 * i, 1, 8)])
        c[ramp(8 * i, 1, 8)],         ->     y[ramp(8 * i, 1, 8)] = select(
        x[ramp(8 * i, 1, 8)], zeros)             c[ramp(8 * i, 1, 8)], a, zeros)

Operands of a condition may fault where it does not hold, so that they are loaded under it: by two instructions of AVX2 for
floats, but a branch for each lane of bytes and of 16 bits, and of anything on processors without masks. Conditions of scalars,
which are branches, and those that seldom hold keep their loads; so do selections of an element or zero by processors that have
masks for such elements, for which they are one instruction.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from weft.ir import (
    ZERO,
    And,
    Apply,
    Bounds,
    Broadcast,
    Const,
    Expr,
    Node,
    Or,
    Ramp,
    Select,
    Var,
    map_nodes,
    prove,
    reads_memory,
)
from weft.loop import Buffer, For, Function, Let, Load, Program, Stmt, Store, stores
from weft.lower.stmt_rewriter import BoundedRewriter, Steps, Visited, map_functions, size_bounds
from weft.targets import Target


def unguard_loads(program: Program, target: Target) -> Program:
    """Returns *program*, whose loops are vectorized, with lets for the guarded loads of its inputs that can't fault."""
    return map_functions(program, lambda f: _unguarded(f, target))


def _unguarded(fn: Function, target: Target) -> Stmt:
    written = list(stores(fn.body))
    if not any(next(_guarded(s.value, target), None) is not None for s in written):
        return fn.body
    read = {p for p in fn.params if isinstance(p, Buffer)} - {s.buffer for s in written}
    return _Unguard(read, target, size_bounds(fn)).rewrite(fn.body)


class _Unguard(BoundedRewriter):
    def __init__(self, read: Set[Buffer], target: Target, bounds: Bounds) -> None:
        super().__init__(bounds)
        self.read = read
        self.target = target

    def visit_for(self, s: For) -> Steps:
        body = yield from self.loop_body(s)
        return For(s.var, s.begin, s.extent, s.kind, body, s.notes)

    def visit_store(self, s: Store) -> Visited:
        named: dict[Node, Node] = {
            n: Var(n.buffer.name, n.dtype)
            for n in dict.fromkeys(_guarded(s.value, self.target))
            if n.buffer in self.read and _is_inside(n, self.bounds)
        }
        made: Stmt = Store(s.buffer, s.indices, map_nodes(s.value, None, memo=dict(named)), s.mask)
        for load, var in named.items():
            assert isinstance(load, Load)
            assert isinstance(var, Var)
            made = Let(var, load, made)
        return made if named else s


def _guarded(root: Expr, target: Target) -> Iterator[Load]:
    """Yields the loads in *root* that only conditions of vectors guard, and at least one of them."""
    seen: set[tuple[Node, bool]] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        at = stack.pop()
        if at in seen:
            continue
        seen.add(at)
        n, guarded = at
        if guarded and isinstance(n, Load):
            yield n
        if isinstance(n, Select | And | Or):
            decides, *rest = n.children()
            if isinstance(n, Select) and isinstance(n.then, Load) and _is_one_instruction(n, target):
                rest = list(n.then.indices)
            stack.append((decides, guarded))
            stack += [(k, True) for k in rest if _masks(decides)]
        else:
            stack += [(k, guarded) for k in n.children()]


def _masks(cond: Node) -> bool:
    """Tells whether *cond* decides lane by lane, and holds often enough that its operands are evaluated for all lanes."""
    seldom = isinstance(cond, Apply) and cond.fn == "unlikely"
    return isinstance(cond, Expr) and cond.dtype.lanes > 1 and not seldom


def _is_one_instruction(e: Select, target: Target) -> bool:
    """Tells whether *e*, a select, is the load of an element in which a mask leaves zeros."""
    other = e.other.value if isinstance(e.other, Broadcast) else e.other
    has_masks = target.isa.mask_registers or (target.isa.masked_memory and e.dtype.bits in (32, 64))
    return has_masks and isinstance(other, Const) and not other.value


def _is_inside(n: Load, bounds: Bounds) -> bool:
    """Tells whether all lanes of a load of neighbours, or of one element, lie in its buffer."""
    if len(n.indices) != 1 or reads_memory(n.indices[0]):
        return False
    at = n.indices[0]
    if isinstance(at, Ramp):
        if not prove(at.stride >= ZERO, bounds):
            return False
        first, last = at.base, at.base + at.stride * (at.lanes - 1)
    elif at.dtype.lanes == 1:
        first = last = at
    else:
        return False
    return prove(first >= ZERO, bounds) and prove(last < n.buffer.shape[0], bounds)
