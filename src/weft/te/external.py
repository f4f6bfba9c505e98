"""Tensors that statements compute instead of a formula: `extern`, for computations that index formulas cannot express.

    def body(ins, outs):
        return Call("sort_rows", (whole(ins[0]), whole(outs[0])))

    (sorted_rows,) = extern([(n, m)], [A], body, [f32], "sorted", functions=[sort_rows])

The statements are one block, which reads all of its inputs and writes all of its outputs: those are its declared effects, and
nothing else is looked at. Schedules never take it apart or move it. Its callees are functions of the program, given as
*functions*, or symbols of another object file: such a program can be exported and linked, and interpreted with a library, but
not compiled within this process, where kernels have no undefined symbols.

Statements that do the same to each slice are given *along*, the dimensions of the outputs that tell slices apart:

    (order,) = extern([(n, m)], [A], sort_row, [i64], "order", along=(0,))        with sort_row(ins, outs, i) of row i

becomes a block with a spatial axis for each of these dimensions, which writes its own slice alone, and reads the elements that
its statements read: threads may share the slices, and inputs may be computed slice by slice.

    for i in range(0, n):
        with block("order", vi=spatial(n, i)):
            reads(A[vi, 0:m]); writes(order[vi, 0:m])
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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
    Range,
    Region,
    Stmt,
    View,
    buffers_of,
    full_region,
    statements,
    touched_regions,
)
from weft.support.dtypes import DType
from weft.support.errors import TypeMismatch
from weft.te.nests import Buffers, around
from weft.te.promotion import as_formula
from weft.te.tensor import Operation, Tensor

Body: TypeAlias = Callable[..., Stmt]
"""Makes the statements, of the input buffers, the output buffers, and the index of the slice."""


class Extern(Operation):
    """Tensors of *shapes* and *dtypes* that the statements of *body* compute from the buffers of *inputs*.

    The statements run for each index of the dimensions *along* of the outputs, which have the same extents in all of them.
    """

    def __init__(
        self,
        name: str,
        shapes: Sequence[tuple[Expr, ...]],
        dtypes: Sequence[DType],
        inputs: Sequence[Tensor],
        body: Body,
        functions: Sequence[Function],
        along: Sequence[int] = (),
    ) -> None:
        self.name = name
        self.shapes = tuple(shapes)
        self.shape = self.shapes[0]
        self.types = tuple(dtypes)
        self.read = tuple(inputs)
        self.body = body
        self.functions = tuple(functions)
        self.along = tuple(along)

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
    along: Sequence[int] = (),
) -> tuple[Tensor, ...]:
    """Defines tensors of *shapes* and *dtypes* by the statements that *body* makes of the input and the output buffers.

    *functions* are those that the statements call, and that these call in turn; they become part of the program. With *along*,
    *body* is given an index for each of these dimensions of the outputs, too: its statements write that slice, and no other.
    Raises `TypeMismatch` where the outputs have different extents along these dimensions.
    """
    made = [tuple([as_expr(s, INDEX) for s in shape]) for shape in shapes]
    if not made or len(made) != len(dtypes):
        raise TypeMismatch(
            f"{name} has {len(made)} shapes and {len(dtypes)} data types", hint="give one of each a tensor"
        )
    for d in along:
        if any(len(shape) <= d or shape[d] is not made[0][d] for shape in made):
            raise TypeMismatch(
                f"{name} computes slices along dimension {d}, in which its tensors have different extents",
                hint="give tensors that have the slices in common",
            )
    return Extern(name, made, dtypes, [as_formula(t) for t in inputs], body, functions, along).outputs


def whole(buffer: Buffer) -> Expr:
    """Returns the address of the first element of *buffer*, as a callee takes it."""
    return Address(buffer, tuple([ZERO for _ in buffer.shape]))


def extern_block(op: Extern, buffers: Buffers) -> Stmt:
    """Returns the block of the statements of *op*: it reads all of its inputs, or the elements that a slice's statements read.

    Statements of no slices are opaque; those of slices are independent of one another.
    """
    ins = [buffers[t] for t in op.read]
    outs = [buffers[t] for t in op.outputs]
    axes = [Axis(Var(f"v{d}"), op.shape[d], AxisKind.SPATIAL) for d in op.along]
    body = op.body(ins, outs, *[a.var for a in axes])
    _check_buffers(op, body, {*ins, *outs})
    slices = dict(zip(op.along, [a.var for a in axes], strict=True))
    touched, _, passed = touched_regions(body)
    own = [_slice(r.buffer, slices) for r in touched if r.buffer in outs]  # read after written
    given = [r for r in (*touched, *passed) if r.buffer in ins] if axes else map(full_region, ins)
    reads, writes = tuple(dict.fromkeys([*given, *own])), tuple([_slice(b, slices) for b in outs])
    loops = [Var(f"i{d}") for d in op.along]
    bindings: tuple[Expr, ...] = tuple(loops)
    if not axes:
        axes, bindings = [Axis(Var("v"), ONE, AxisKind.OPAQUE)], (ZERO,)
    block = Block(outs[0].name, tuple(axes), bindings, TRUE, reads, writes, None, body, ())
    return around(loops, axes, block) if loops else block


def _check_buffers(op: Extern, body: Stmt, known: Collection[Buffer]) -> None:
    """Refuses statements that use a buffer of neither an input nor an output, nor of their own."""
    local = {s.buffer for s in statements(body) if isinstance(s, Alloc | View)}
    for b in buffers_of(body):
        if b not in known and b not in local:
            raise TypeMismatch(f"{op.name} uses the buffer {b.name}, which is neither an input nor an output of it")


def _slice(b: Buffer, slices: Mapping[int, Expr]) -> Region:
    """Returns the part of *b* at the indices of *slices*, which are by dimension."""
    whole = full_region(b)
    return Region(b, tuple([Range(slices[d], ONE) if d in slices else r for d, r in enumerate(whole.ranges)]))
