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

from collections.abc import Collection, Iterable, Iterator, Sequence

from weft.ir import Expr, Var, free_vars, post_order
from weft.loop import Alloc, Function, Program, Stmt, seq
from weft.support.errors import TypeMismatch
from weft.te.external import Extern, extern_block
from weft.te.nests import Buffers, nest, variables
from weft.te.prefixes import Prefix, prefix_nests
from weft.te.scan import Scan
from weft.te.scan_loops import scan_nests
from weft.te.scattering import Scatter, scatter_nests
from weft.te.tensor import Compute, Operation, Placeholder, Tensor, topological


def to_program(
    inputs: Sequence[Tensor], outputs: Sequence[Tensor], name: str = "main", sizes: Sequence[Var] = ()
) -> Program:
    """Returns the program of one function that computes *outputs* from *inputs*.

    Its parameters are the inputs, the outputs, then the symbolic sizes: those of *sizes* first, then any others that occur
    in a shape. Raises `TypeMismatch` when the outputs need a placeholder that is not among *inputs*, when one of them is an
    input or listed twice, and when a formula has a variable that is neither an index of its own nor a size.
    """
    ops = topological(outputs)
    _check_inputs(ops, inputs)
    _check_outputs(inputs, outputs)
    buffers = Buffers()
    params = [buffers[t] for t in (*inputs, *outputs)]
    body = seq(*[part for op in ops for part in _nests(op, buffers)])
    for b in reversed(buffers.made):
        if b not in params:
            body = Alloc(b, body)
    symbols = list(dict.fromkeys([*sizes, *(v for b in params for s in b.shape for v in free_vars(s))]))
    for op in _formulas(ops):
        _check_variables(op.name, _expressions(op), {*_indices(op), *symbols})
    return Program((Function(name, (*params, *symbols), body), *_callees(ops, name)))


def _nests(op: Operation, buffers: Buffers) -> list[Stmt]:
    if isinstance(op, Compute):
        return [nest(op, buffers)]
    if isinstance(op, Extern):
        return [extern_block(op, buffers)]
    if isinstance(op, Scatter):
        return scatter_nests(op, buffers)
    if isinstance(op, Prefix):
        return prefix_nests(op, buffers)
    return scan_nests(op, buffers) if isinstance(op, Scan) else []


def _callees(ops: Iterable[Operation], entry: str) -> list[Function]:
    """Returns the functions that statements among *ops* call; refuses two of one name."""
    found = list(dict.fromkeys(f for op in ops if isinstance(op, Extern) for f in op.functions))
    names = [entry, *[f.name for f in found]]
    if twice := [n for n in names if names.count(n) > 1]:
        raise TypeMismatch(f"two functions of the program are called {twice[0]}", hint="rename one of them")
    return found


def _formulas(ops: Iterable[Operation]) -> Iterator[Compute | Scatter]:
    """Yields all formulas, those of a scan's step too."""
    for op in ops:
        if isinstance(op, Compute | Scatter):
            yield op
        elif isinstance(op, Scan):
            yield from op.step


def _check_inputs(ops: Iterable[Operation], inputs: Sequence[Tensor]) -> None:
    given = {t.op for t in inputs}
    states = {s.placeholder.op for op in ops if isinstance(op, Scan) for s in op.states}
    for op in ops:
        if isinstance(op, Placeholder) and op not in given:
            hint = "read the result of the scan, not its placeholder" if op in states else "add it to inputs"
            raise TypeMismatch(f"the outputs need {op.name}, which is not among the inputs", hint=hint)


def _check_outputs(inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
    given = {(t.op, t.index) for t in inputs}
    listed: set[tuple[Operation, int]] = set()
    for t in outputs:
        if (t.op, t.index) in given:
            raise TypeMismatch(f"the output {t.name} is an input", hint="copy it by a compute()")
        if (t.op, t.index) in listed:
            raise TypeMismatch(f"the output {t.name} is listed twice", hint="copy it by a compute()")
        listed.add((t.op, t.index))


def _indices(op: Compute | Scatter) -> tuple[Var, ...]:
    return op.axes if isinstance(op, Scatter) else variables(op)


def _expressions(op: Compute | Scatter) -> tuple[Expr, ...]:
    if isinstance(op, Scatter):
        return op.expressions
    return (*op.values, *([op.reduction.condition] if op.reduction else []))


def _check_variables(name: str, expressions: Iterable[Expr], known: Collection[Var]) -> None:
    """Refuses a formula over an index that is not its own, such as a reduce_axis() that nothing reduces."""
    for e in expressions:
        for n in post_order(e):
            if isinstance(n, Var) and n not in known:
                raise TypeMismatch(
                    f"the formula of {name} uses {n.name}, which is neither one of its indices nor a size",
                    hint="an axis of reduce_axis() must be reduced by the formula that uses it",
                )
