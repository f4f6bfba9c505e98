"""Tensors that statements compute instead of a formula: `extern`, for computations that index formulas cannot express.

    def body(ins, outs):
        return Call("sort_rows", (whole(ins[0]), whole(outs[0])))

    (sorted_rows,) = extern([(n, m)], [A], body, [f32], "sorted", functions=[sort_rows])

The statements are one block, which reads all of its inputs and writes all of its outputs: those are its declared effects, and
nothing else is looked at. Schedules never take it apart or move it. Its callees are functions of the program, given as
*functions*, or symbols of another object file: such a program can be exported and linked, and interpreted with a library, but
not compiled within this process, where kernels have no undefined symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from weft.ir import INDEX, ONE, TRUE, ZERO, Expr, ExprLike, Var, as_expr
from weft.loop import (
    Address,
    Alloc,
    Axis,
    AxisKind,
    Block,
    Buffer,
    Function,
    Stmt,
    View,
    buffers_of,
    full_region,
    statements,
    touched_regions,
)
from weft.support.dtypes import DType
from weft.support.errors import TypeMismatch
from weft.te.nests import Buffers
from weft.te.tensor import Operation, Tensor

Body: TypeAlias = Callable[[Sequence[Buffer], Sequence[Buffer]], Stmt]


class Extern(Operation):
    """Tensors of *shapes* and *dtypes* that the statements of *body* compute from the buffers of *inputs*."""

    def __init__(
        self,
        name: str,
        shapes: Sequence[tuple[Expr, ...]],
        dtypes: Sequence[DType],
        inputs: Sequence[Tensor],
        body: Body,
        functions: Sequence[Function],
    ) -> None:
        self.name = name
        self.shapes = tuple(shapes)
        self.shape = self.shapes[0]
        self.types = tuple(dtypes)
        self.read = tuple(inputs)
        self.body = body
        self.functions = tuple(functions)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that the statements read."""
        return tuple(dict.fromkeys(self.read))

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """The type of each tensor."""
        return self.types

    def shape_of(self, index: int) -> tuple[Expr, ...]:
        """Returns the shape of one of the tensors."""
        return self.shapes[index]


def extern(
    shapes: Iterable[Iterable[ExprLike]],
    inputs: Sequence[Tensor],
    body: Body,
    dtypes: Sequence[DType],
    name: str = "extern",
    functions: Sequence[Function] = (),
) -> tuple[Tensor, ...]:
    """Defines tensors of *shapes* and *dtypes* by the statements that *body* makes of the input and the output buffers.

    *functions* are those that the statements call, and that these call in turn; they become part of the program.
    """
    made = [tuple([as_expr(s, INDEX) for s in shape]) for shape in shapes]
    if not made or len(made) != len(dtypes):
        raise TypeMismatch(
            f"{name} has {len(made)} shapes and {len(dtypes)} data types", hint="give one of each a tensor"
        )
    return Extern(name, made, dtypes, inputs, body, functions).outputs


def whole(buffer: Buffer) -> Expr:
    """Returns the address of the first element of *buffer*, as a callee takes it."""
    return Address(buffer, tuple([ZERO for _ in buffer.shape]))


def extern_block(op: Extern, buffers: Buffers) -> Stmt:
    """Returns the block of the statements of *op*: opaque, with all of its buffers as its regions."""
    ins = [buffers[t] for t in op.read]
    outs = [buffers[t] for t in op.outputs]
    body = op.body(ins, outs)
    local = {s.buffer for s in statements(body) if isinstance(s, Alloc | View)}
    for b in buffers_of(body):
        if b not in ins and b not in outs and b not in local:
            raise TypeMismatch(f"{op.name} uses the buffer {b.name}, which is neither an input nor an output of it")
    own = [r.buffer for r in touched_regions(body)[0] if r.buffer in outs]  # read after written
    reads = tuple([full_region(b) for b in dict.fromkeys([*ins, *own])])
    writes = tuple([full_region(b) for b in outs])
    axis = Axis(Var("v"), ONE, AxisKind.OPAQUE)
    return Block(outs[0].name, (axis,), (ZERO,), TRUE, reads, writes, None, body, ())
