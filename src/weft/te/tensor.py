"""Tensors and the operations that make them: `placeholder` and `compute`.

    A = placeholder((n, k), f32, "A")
    B = placeholder((k, m), f32, "B")
    r = reduce_axis(k, "r")
    C = compute((n, m), lambda i, j: sum_(A[i, r] * B[r, j], [r]), "C")

The index formula of a `compute` is evaluated when it is first asked for, so that building a tensor for its shape alone
costs next to nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn, TypeAlias

from weft.ir import INDEX, Expr, ExprLike, Var, as_expr, node
from weft.support.dtypes import DType, f32
from weft.support.errors import TypeMismatch
from weft.te.reducer import Reduction

Body: TypeAlias = "Expr | Reduction | tuple[Expr, ...]"


class Operation:
    """The producer of one or several tensors, mostly of one shape."""

    name: str
    shape: tuple[Expr, ...]

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that it reads, in order of first use."""
        return ()

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The tensors that it makes."""
        return tuple([Tensor(self, k, t) for k, t in enumerate(self.dtypes)])

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """The type of each tensor that it makes."""
        raise NotImplementedError

    def shape_of(self, index: int) -> tuple[Expr, ...]:
        """Returns the shape of one of the tensors."""
        return self.shape

    def name_of(self, index: int) -> str:
        """Returns the name of one of the tensors: the operation's, with its number if it is not the first."""
        return self.name if index == 0 else f"{self.name}_{index}"


@dataclass(eq=False)
class Placeholder(Operation):
    """A tensor given from outside."""

    name: str
    shape: tuple[Expr, ...]
    dtype: DType

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """The tensor's type."""
        return (self.dtype,)


class Compute(Operation):
    """Tensors given by an index formula over *axes*; `values` has one expression an output, `reduction` their reduction."""

    def __init__(
        self, name: str, shape: tuple[Expr, ...], fn: Callable[..., Any], axis_names: Sequence[str] | None = None
    ) -> None:
        self.name = name
        self.shape = shape
        self.fn = fn
        self.axis_names = axis_names

    @cached_property
    def axes(self) -> tuple[Var, ...]:
        """The index variables, one a dimension, named as the formula names them, unless told otherwise."""
        return tuple([Var(n) for n in self.axis_names or axis_names(self.fn, len(self.shape))])

    @cached_property
    def body(self) -> Reduction | tuple[Expr, ...]:
        """The formula's value: a reduction, or one expression for each output."""
        made: Body = self.fn(*self.axes)
        if isinstance(made, Reduction):
            return made
        return made if isinstance(made, tuple) else (as_expr(made, f32),)

    @property
    def values(self) -> tuple[Expr, ...]:
        """The expression of each output; of a reduction, the values that it reduces."""
        return self.body.values if isinstance(self.body, Reduction) else self.body

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """The type of each value."""
        return tuple([v.dtype for v in self.values])

    @property
    def reduction(self) -> Reduction | None:
        """The reduction at the top of the formula, if there is one."""
        return self.body if isinstance(self.body, Reduction) else None

    @cached_property
    def reads(self) -> tuple[Read, ...]:
        """Every access to another tensor in the formula."""
        from_values = [r for v in self.values for r in reads_of(v)]
        guard = self.reduction.condition if self.reduction else None
        return tuple(dict.fromkeys(from_values + ([] if guard is None else list(reads_of(guard)))))

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that the formula reads, in order of first use."""
        return tuple(dict.fromkeys(r.tensor for r in self.reads))


@dataclass(frozen=True, eq=False)
class Tensor:
    """One output of an operation: `t[i, j]` is its element in a formula."""

    __leaf__ = "value"

    op: Operation
    index: int
    dtype: DType

    @property
    def shape(self) -> tuple[Expr, ...]:
        """The extent of each dimension; symbolic ones are variables."""
        return self.op.shape_of(self.index)

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def name(self) -> str:
        """The name that its operation gives it."""
        return self.op.name_of(self.index)

    def __getitem__(self, indices: ExprLike | Sequence[ExprLike]) -> Expr:
        given: Iterable[ExprLike] = indices if isinstance(indices, tuple | list) else (indices,)
        return Read(self, tuple([as_expr(i, INDEX) for i in given]))

    def __iter__(self) -> NoReturn:
        raise TypeMismatch(
            f"the tensor {self.name} can't be iterated over",
            hint="index it by the axes of a compute(); over a reduce_axis(), use sum_, max_, min_, any_ or prod",
        )

    def __repr__(self) -> str:
        return f"Tensor({self.name}: {self.dtype}, rank {self.rank})"


@node
class Read(Expr):
    """The element of *tensor* at *indices*."""

    __derived__ = ("dtype",)
    tensor: Tensor
    indices: tuple[Expr, ...]

    def derive(self) -> tuple[DType]:
        """Returns the tensor's type; raises `TypeMismatch` for a wrong number or type of indices."""
        t = self.tensor
        if len(self.indices) != t.rank:
            raise TypeMismatch(f"{t.name} has {t.rank} dimensions, but {len(self.indices)} indices were given")
        for i in self.indices:
            if i.dtype is not INDEX:
                raise TypeMismatch(f"an index of {t.name} is of type {i.dtype}, not {INDEX}", hint="cast it")
        return (t.dtype,)


def reads_of(e: Expr) -> list[Read]:
    """Returns the distinct accesses to tensors in *e*, in order."""
    from_nodes = [n for n in _pre_order(e) if isinstance(n, Read)]
    return list(dict.fromkeys(from_nodes))


def _pre_order(e: Expr) -> list[Any]:
    seen: dict[Any, None] = {}
    stack: list[Any] = [e]
    while stack:
        n = stack.pop()
        if n not in seen:
            seen[n] = None
            stack += reversed(n.children())
    return list(seen)


def axis_names(fn: Callable[..., Any], rank: int) -> list[str]:
    """Takes the names from the formula's parameters; `*i` gives i0, i1, ..."""
    names: list[str] = []
    for p in inspect.signature(fn).parameters.values():
        if p.kind is inspect.Parameter.VAR_POSITIONAL:
            names += [f"{p.name}{k}" for k in range(rank - len(names))]
        elif p.default is inspect.Parameter.empty:
            names.append(p.name)
    if len(names) != rank:
        raise TypeMismatch(f"the formula takes {len(names)} indices, but the shape has {rank} dimensions")
    return names


def placeholder(shape: Iterable[ExprLike], dtype: DType = f32, name: str = "x") -> Tensor:
    """Declares an input tensor of *shape* (integers, or index expressions for symbolic sizes)."""
    return Tensor(Placeholder(name, tuple([as_expr(s, INDEX) for s in shape]), dtype), 0, dtype)


def compute(
    shape: Iterable[ExprLike],
    fn: Callable[..., Any],
    name: str = "y",
    *,
    dtype: DType | None = None,
    axis_names: Sequence[str] | None = None,
) -> Tensor:
    """Defines a tensor of *shape* by the index formula *fn*, which takes one index for each dimension.

    *fn* returns an expression, or a reduction such as `sum_(e, axes)`. Giving *dtype* keeps the formula unevaluated
    until it is needed; it must then be the formula's type. The indices have the names of its parameters, or *axis_names*.
    """
    op = Compute(name, tuple([as_expr(s, INDEX) for s in shape]), fn, axis_names)
    return Tensor(op, 0, op.values[0].dtype if dtype is None else dtype)


def compute_many(shape: Iterable[ExprLike], fn: Callable[..., Any], name: str = "y") -> tuple[Tensor, ...]:
    """Defines several tensors of one shape by a formula that returns a tuple, or a tuple-valued reduction."""
    return Compute(name, tuple([as_expr(s, INDEX) for s in shape]), fn).outputs


def topological(outputs: Iterable[Tensor], given: Iterable[Tensor] = ()) -> list[Operation]:
    """Returns the operations that *outputs* need, each after those it reads, but not the producers of *given* tensors."""
    before = {t.op for t in given}
    done: dict[Operation, None] = {}
    stack: list[tuple[Operation, bool]] = [(t.op, False) for t in reversed(list(outputs))]
    while stack:
        op, ready = stack.pop()
        if op in done or op in before:
            continue
        if ready:
            done[op] = None
            continue
        stack.append((op, True))
        stack += [(t.op, False) for t in reversed(op.inputs)]
    return list(done)
