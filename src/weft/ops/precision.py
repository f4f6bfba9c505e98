"""The precision of operators on 16-bit floats: they compute in float32 and round once, where they end.

A formula that adds, multiplies or applies a function reads its 16-bit inputs as float32 (`Widened`), so that its constants,
sums and stages in between are float32 too; the last stage of each output rounds it to the type that the formula gives it for
inputs as they are. A formula that only moves, compares or chooses elements is left as it is: it loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from weft.ir import Add, Apply, Cast, Div, Expr, Max, Min, Mul, Neg, Node, Select, Sub, Var, as_expr, cast
from weft.support.dtypes import DType, f32
from weft.te import Compute, Operation, Read, Tensor, Widened, compute, is_narrow, topological

Tensors = Sequence[Tensor | None]

_EXACT_FUNCTIONS: Final = frozenset({"abs", "ceil", "copysign", "floor", "is_inf", "is_nan", "round_even", "trunc"})
"""Functions whose results, of a float that a type holds, that type holds too."""


def in_float32(build: Callable[[Tensors], tuple[Tensor, ...]], inputs: Tensors) -> tuple[Tensor, ...]:
    """Returns the outputs of *build* on *inputs*, computed in float32 where these are narrower and it does arithmetic."""
    made = build(inputs)
    if not any(t is not None and is_narrow(t.dtype) for t in inputs):
        return made
    wide = build([None if t is None else Widened.of(t) for t in inputs])
    stages = topological(wide, [t for t in inputs if t is not None])
    if not any(_computes(op) for op in stages):
        return made
    inner = {(r.op, r.index) for op in stages for r in op.inputs}
    return tuple([_rounded(w, t.dtype, is_read=(w.op, w.index) in inner) for w, t in zip(wide, made, strict=True)])


def rounds(outputs: Sequence[Tensor]) -> bool:
    """Tells whether *outputs* are rounded to floats of less than 32 bits on the way."""
    return any(
        isinstance(n, Cast) and is_narrow(n.dtype) and not n.a.dtype.is_bool
        for op in topological(outputs)
        for e in _values(op)
        for n in _computed(e)
    )


def commutes_with_rounding(outputs: Sequence[Tensor]) -> bool:
    """Tells whether *outputs* are floats chosen among those read, or their negatives or absolute values.

    To round before is then the same as to round after.
    """
    return all(_commutes(n) for op in topological(outputs) for e in _values(op) for n in _computed(e))


def _commutes(n: Node) -> bool:
    of_floats = not isinstance(n, Read) and any(isinstance(k, Expr) and k.dtype.is_float for k in n.children())
    return not of_floats or isinstance(n, Select | Min | Max | Neg) or (isinstance(n, Apply) and n.fn == "abs")


def _computes(op: Operation) -> bool:
    """Tells whether *op* makes floats of others by arithmetic, which rounds."""
    return not isinstance(op, Compute) or any(
        _is_arithmetic(n) and _depends_on_elements(n) for e in _values(op) for n in _computed(e)
    )


def _values(op: Operation) -> tuple[Expr, ...]:
    """Returns the values of a formula, and the expressions by which its reduction combines two of them."""
    if not isinstance(op, Compute):
        return ()
    if op.reduction is None:
        return op.values
    a, b = (tuple([Var(name, v.dtype) for v in op.values]) for name in "ab")
    return (*op.values, *op.reduction.reducer.combine(a, b))


def _is_arithmetic(n: Node) -> bool:
    if isinstance(n, Apply):
        return n.fn not in _EXACT_FUNCTIONS
    return isinstance(n, Add | Sub | Mul | Div) and n.dtype.is_float


def _depends_on_elements(n: Node) -> bool:
    """Tells whether a value is computed of elements of tensors, rather than of where it is."""
    return any(isinstance(k, Read) or (isinstance(k, Var) and k.dtype.is_float) for k in _computed(n))


def _computed(root: Node) -> Iterator[Node]:
    """Yields the nodes that a value is computed of, but not those of the indices of its reads."""
    seen: set[Node] = set()
    stack = [root]
    while stack:
        n = stack.pop()
        if n not in seen:
            seen.add(n)
            yield n
            stack += () if isinstance(n, Read) else n.children()


def _rounded(t: Tensor, dtype: DType, *, is_read: bool) -> Tensor:
    """Returns *t* as *dtype*: rounded in the stage that computes it, unless that reduces or another stage reads it."""
    if t.dtype is dtype:
        return t
    if isinstance(t, Widened):
        return t.stored
    op = t.op
    if is_read or not isinstance(op, Compute) or op.reduction is not None or len(op.values) > 1:
        return compute(t.shape, lambda *i: cast(t[i], dtype), f"{t.name}_rounded", dtype=dtype)
    names = [v.name for v in op.axes]
    return Tensor(Compute(op.name, op.shape, lambda *i: cast(as_expr(op.fn(*i), f32), dtype), names), 0, dtype)
