"""Tensors made of sizes and numbers, and operators that only pass values on."""

from __future__ import annotations

import numpy as np

from weft.frontends.string_ids import Strings
from weft.frontends.tensorflow_operators.call import SAVE_AGAIN, Call, ComplexTensor, Results
from weft.frontends.tensorflow_operators.registry import translates
from weft.graph import Array
from weft.graph.builder import Operand, static_sizes, total
from weft.graph.composites.run_time import late_shapes
from weft.ir import ONE, Expr, as_expr
from weft.ops import simplify_size
from weft.support.dtypes import DType, i32, i64


@translates("Const")
def const(c: Call) -> Results:
    """A tensor of the file."""
    array = c.value("value", np.ndarray)
    if array.dtype == object:
        return Strings(c.strings.tensor(array))
    return (
        ComplexTensor(c.constant(array.real), c.constant(array.imag)) if array.dtype.kind == "c" else c.constant(array)
    )


@translates(
    "Identity",
    "StopGradient",
    "PreventGradient",
    "Snapshot",
    "EnsureShape",
    "PlaceholderWithDefault",
    "CheckNumerics",
    "DeepCopy",
    "GuaranteeConst",
)
def identity(c: Call) -> Results:
    """The value itself."""
    return c.inputs[0] if c.inputs else c.tensor()


@translates("ReadVariableOp")
def read_variable(c: Call) -> Results:
    """The value of a variable."""
    return c.variable(0)


@translates("IdentityN")
def identities(c: Call) -> Results:
    """The values themselves."""
    return tuple(c.inputs)


def index_type(c: Call, name: str = "out_type") -> DType:
    """Returns the type of sizes and places: int32 unless the node says otherwise."""
    found = c.attributes.get(name)
    return found if isinstance(found, DType) else i32


@translates("Shape", "ShapeN")
def shape(c: Call) -> Results:
    """The sizes of tensors as vectors, known when the model is compiled except for symbolic ones."""
    made = [c.cast(c.vector(x.shape), index_type(c)) for x in c.tensors()]
    return made[0] if c.op == "Shape" else tuple(made)


@translates("Size")
def size(c: Call) -> Operand:
    """The number of elements."""
    return c.cast(c.size(total(c.tensor().shape)), index_type(c))


@translates("Rank")
def rank(c: Call) -> Operand:
    """The number of dimensions."""
    return c.scalar(c.tensor().rank, i32)


@translates("ZerosLike", "OnesLike")
def like(c: Call) -> Operand:
    """Zeros or ones in the shape of a tensor."""
    x = c.tensor()
    return c.add("full", shape=tuple(x.shape), value=int(c.op == "OnesLike"), dtype=x.dtype)


@translates("Fill")
def fill(c: Call) -> Operand:
    """One number in all places of a shape."""
    value = c.tensor(1)
    if not c.is_known(0):
        return late_shapes.expand_late(c, value, c.tensor(0, 1))
    return c.add("expand", c.reshape(value, []), shape=tuple(c.sizes(0, "the shape to fill")))


@translates("Empty")
def empty(c: Call) -> Operand:
    """A tensor of zeros."""
    return c.add("full", shape=tuple(c.sizes(0, "the shape")), value=0, dtype=c.dtype("dtype"))


@translates("Range")
def range_(c: Call) -> Operand:
    """Numbers from one to before another, by a step."""
    start, limit, step = (c.tensor(i) for i in range(3))
    if not all(c.is_known(i) for i in range(3)):
        return late_shapes.range_late(c, start, limit, step)
    values = [c.known(i, "the range").reshape(-1) for i in range(3)]
    if any(v.size != 1 for v in values):
        c.fail("its bounds are no numbers", SAVE_AGAIN)
    if not any(v.dtype == object for v in values):
        return _numbers(c, values)
    first, last, by = (v[0] for v in values)
    if not isinstance(by, Expr) and int(by) == 1 and not isinstance(first, Expr):
        size = simplify_size(last - int(first))
        return c.cast(c.add("range", start=int(first), size=size, step=1), start.dtype)
    return late_shapes.range_late(c, start, limit, step)


_MOST_NUMBERS = 1 << 24


def _numbers(c: Call, values: list[Array]) -> Operand:
    first, last, by = (v[0] for v in values)
    count = -1.0 if not by else np.ceil((float(last) - float(first)) / float(by))
    if not -_MOST_NUMBERS < count <= _MOST_NUMBERS or not by:
        c.fail(f"its range goes from {first} to {last} by {by}", SAVE_AGAIN)
    return c.constant(np.arange(first, last, by, dtype=values[0].dtype))


@translates("LinSpace")
def lin_space(c: Call) -> Operand:
    """Numbers at equal distances."""
    first, last = (c.number_at(i, "the range") for i in range(2))
    count = c.number_at(2, "the number of elements")
    if not 0 < count <= _MOST_NUMBERS:
        c.fail(f"it makes {count} numbers", SAVE_AGAIN)
    return c.constant(np.linspace(first, last, int(count)).astype(c.tensor().dtype.numpy))


@translates("BroadcastArgs")
def broadcast_args(c: Call) -> Operand:
    """The shape to which two shapes broadcast."""
    a, b = (c.sizes(i, "a shape") for i in range(2))
    longest = max(len(a), len(b))
    pairs = zip([1] * (longest - len(a)) + a, [1] * (longest - len(b)) + b, strict=True)
    return c.cast(c.vector([m if isinstance(n, int) and n == 1 else n for m, n in pairs]), c.tensor().dtype)


@translates("MatrixBandPart")
def band_part(c: Call) -> Operand:
    """Matrices with zeros outside of a band around the diagonal; a negative width keeps all of that side."""
    x, lower, upper = c.tensor(0), *(int(c.number_at(i, "the width of the band")) for i in (1, 2))
    if upper >= 0:
        x = c.add("trilu", x, k=upper, upper=False)
    return c.add("trilu", x, k=-lower, upper=True) if lower >= 0 else x


@translates("Diag")
def diag(c: Call) -> Operand:
    """A tensor twice as many dimensions, with the elements of another where both halves of its indices are equal."""
    x = c.tensor(0)
    count = as_expr(total(x.shape))
    rows = c.reshape(x, [count, ONE])
    made = c.add("where", _on_diagonal(c, count, count), rows, c.scalar(0, x.dtype))
    return c.reshape(made, [*x.shape, *x.shape])


@translates("DiagPart")
def diag_part_of_all(c: Call) -> Operand:
    """The elements whose indices' halves are equal."""
    x = c.tensor(0)
    half = x.shape[: x.rank // 2]
    return c.reshape(_diagonal(c, c.reshape(x, [total(half), total(half)])), half)


@translates("MatrixDiag", "MatrixDiagV2", "MatrixDiagV3")
def matrix_diag(c: Call) -> Operand:
    """Matrices with vectors on their diagonals, and zeros elsewhere."""
    x = c.tensor(0)
    for i, plain in ((1, 0), (2, -1), (3, -1), (4, 0)):
        if c.has(i) and c.ints_at(i, "the place of the diagonal") != [plain]:
            c.fail("diagonals other than the main one are not supported", "build the model without them")
    mask = _on_diagonal(c, x.shape[-1], x.shape[-1])
    wide = c.reshape(x, [*x.shape, ONE])
    return c.add("where", mask, wide, c.scalar(0, x.dtype))


@translates("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3")
def diag_part(c: Call) -> Operand:
    """The main diagonals of matrices."""
    x = c.tensor(0)
    rest = _rows_below(c, x, 1)
    made = _diagonal(c, x)
    return c.add("slice", made, starts=(0,), ends=(-rest,), axes=(made.rank - 1,), steps=(1,)) if rest else made


def _diagonal(c: Call, x: Operand) -> Operand:
    kept = c.add("where", _on_diagonal(c, *x.shape[-2:]), x, c.scalar(0, x.dtype))
    return c.add("reduce_sum", kept, axes=(x.rank - 1,), keepdims=False)


@translates("MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3")
def set_diag(c: Call) -> Operand:
    """Matrices with other main diagonals."""
    x, diagonal = c.tensor(0), c.tensor(1)
    rest = _rows_below(c, x, 2)
    if rest:
        diagonal = c.add("pad", diagonal, pads=(*[0] * (2 * diagonal.rank - 1), rest))
    return c.add("where", _on_diagonal(c, *x.shape[-2:]), c.reshape(diagonal, [*diagonal.shape, ONE]), x)


def _rows_below(c: Call, x: Operand, k: int) -> int:
    """Returns how many rows of a matrix its main diagonal does not reach; input *k*, if there is one, says which one is meant."""
    sizes = static_sizes(x.shape[-2:])
    is_main = not c.has(k) or c.ints_at(k, "the place of the diagonal") == [0]
    if x.rank < 2 or not is_main or (sizes is None and x.shape[-1] is not x.shape[-2]):
        c.fail(f"only main diagonals of matrices are supported, not those of {x!r}", "build the model without it")
    return 0 if sizes is None else max(sizes[0] - sizes[1], 0)


def _on_diagonal(c: Call, rows: Expr, columns: Expr) -> Operand:
    """Tells which places of a matrix are on its diagonal."""
    down, along = (c.add("range", start=0, size=n, step=1) for n in (rows, columns))
    return c.add("equal", c.reshape(c.cast(down, i64), [rows, ONE]), c.reshape(c.cast(along, i64), [ONE, columns]))
