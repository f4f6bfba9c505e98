"""From tensor expressions to a loop program: one loop nest with one block for each operation.

    C = compute((n, m), lambda i, j: sum_(A[i, k] * B[k, j], [k]), "C")

becomes

    for i in range(0, n):
        for j in range(0, m):
            for k in range(0, r):
                with block("C", vi=spatial(n, i), vj=spatial(m, j), vk=reduce(r, k)):
                    with init():
                        C[vi, vj] = 0.0
                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

The outputs and inputs are the function's parameters; tensors in between are allocated around everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from weft.ir.expr import TRUE, Expr, Select, Var
from weft.ir.node import Node
from weft.ir.rewrite import free_vars, map_nodes, substitute
from weft.loop.nodes import (
    Alloc,
    Axis,
    AxisKind,
    Buffer,
    Function,
    Let,
    Load,
    Program,
    Stmt,
    for_,
    seq,
    store,
)  # fmt: skip
from weft.loop.regions import make_block
from weft.support.errors import TypeMismatch
from weft.te.reducer import Reduction
from weft.te.tensor import Compute, Operation, Placeholder, Read, Tensor, topological


def to_program(
    inputs: Sequence[Tensor], outputs: Sequence[Tensor], name: str = "main", sizes: Sequence[Var] = ()
) -> Program:
    """Returns the program of one function that computes *outputs* from *inputs*.

    Its parameters are the inputs, the outputs, then the symbolic sizes: those of *sizes* first, then any others that occur
    in a shape. Raises `TypeMismatch` when the outputs need a placeholder that is not among *inputs*.
    """
    ops = topological(outputs)
    _check_inputs(ops, inputs)
    buffers = _Buffers()
    params = [buffers[t] for t in (*inputs, *outputs)]
    computed = [op for op in ops if isinstance(op, Compute)]
    nests = [_nest(op, buffers) for op in computed]
    body = seq(*nests)
    for b in reversed(buffers.made):
        if b not in params:
            body = Alloc(b, body)
    symbols = list(dict.fromkeys([*sizes, *(v for b in params for s in b.shape for v in free_vars(s))]))
    return Program((Function(name, (*params, *symbols), body),))


def _check_inputs(ops: Iterable[Operation], inputs: Sequence[Tensor]) -> None:
    given = {t.op for t in inputs}
    for op in ops:
        if isinstance(op, Placeholder) and op not in given:
            raise TypeMismatch(f"the outputs need {op.name}, which is not among the inputs", hint="add it to inputs")


class _Buffers:
    """The buffer of each tensor, made when first asked for, with names made unique."""

    def __init__(self) -> None:
        self.of: dict[tuple[Operation, int], Buffer] = {}
        self.names: dict[str, int] = {}

    def __getitem__(self, t: Tensor) -> Buffer:
        key = (t.op, t.index)
        if key not in self.of:
            self.of[key] = Buffer(self._unique(t.name), t.shape, t.dtype)
        return self.of[key]

    @property
    def made(self) -> list[Buffer]:
        return list(self.of.values())

    def _unique(self, name: str) -> str:
        n = self.names[name] = self.names.get(name, -1) + 1
        return name if n == 0 else f"{name}_{n}"


def _nest(op: Compute, buffers: _Buffers) -> Stmt:
    """Builds the loops around the block of one operation."""
    reduction = op.reduction
    spatial = [Axis(Var(f"v{v.name}"), e, AxisKind.SPATIAL) for v, e in zip(op.axes, op.shape, strict=True)]
    reduced = [Axis(Var(f"v{a.name}"), a.extent, AxisKind.REDUCE) for a in (reduction.axes if reduction else ())]
    axes = (*spatial, *reduced)
    old = (*op.axes, *(reduction.axes if reduction else ()))
    to_axes = {v: a.var for v, a in zip(old, axes, strict=True)}
    outputs = [buffers[Tensor(op, k, v.dtype)] for k, v in enumerate(op.values)]
    where = [a.var for a in spatial]
    rewrite = _to_loads(buffers, to_axes)
    loops = [Var(v.name) for v in old]
    if reduction is None:
        body, init = _stores(outputs, where, [rewrite(v) for v in op.values]), None
    else:
        body, init = _reduce(reduction, outputs, where, rewrite)
    result: Stmt = make_block(outputs[0].name, axes, tuple(loops), body, init)
    for v, a in zip(reversed(loops), reversed(axes), strict=True):
        result = for_(v, a.extent, result)
    return result


def _reduce(
    r: Reduction, outputs: Sequence[Buffer], where: Sequence[Expr], rewrite: Callable[[Expr], Expr]
) -> tuple[Stmt, Stmt]:
    """Returns the update of a reduction's block, and its initialisation."""
    so_far = tuple([Load(b, tuple(where)) for b in outputs])
    combined = r.reducer.combine(so_far, tuple([rewrite(v) for v in r.values]))
    if r.condition is not TRUE:
        guard = rewrite(r.condition)
        combined = tuple([Select(guard, new, old) for new, old in zip(combined, so_far, strict=True)])
    return _stores(outputs, where, combined), _stores(outputs, where, r.identity())


def _stores(outputs: Sequence[Buffer], where: Sequence[Expr], values: Sequence[Expr]) -> Stmt:
    """Stores all outputs at once: several values are computed before the first is written, since they may read each other."""
    if len(outputs) == 1:
        return store(outputs[0], where, values[0])
    names = [Var(f"{b.name}_new", b.dtype) for b in outputs]
    body = seq(*[store(b, where, n) for b, n in zip(outputs, names, strict=True)])
    for n, v in zip(reversed(names), reversed(values), strict=True):
        body = Let(n, v, body)
    return body


def _to_loads(buffers: _Buffers, axes: dict[Var, Var]) -> Callable[[Expr], Expr]:
    """Returns a rewriter of formulas: tensors become buffers, index variables a block's axes."""

    def change(n: Node) -> Node | None:
        return Load(buffers[n.tensor], n.indices) if isinstance(n, Read) else None

    return lambda e: map_nodes(substitute(e, axes), change)
