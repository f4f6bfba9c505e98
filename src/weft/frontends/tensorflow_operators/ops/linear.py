"""Products of matrices, their factors, and linear systems."""

from __future__ import annotations

import numpy as np

from weft.frontends.tensorflow_operators.call import Call, Results
from weft.frontends.tensorflow_operators.registry import translates
from weft.graph.builder import Operand
from weft.graph.composites.einsum import einsum
from weft.graph.composites.numerics import linear_algebra as matrices
from weft.support.dtypes import DType, i64


def _turned(c: Call, x: Operand, *, turns: bool) -> Operand:
    """Returns matrices, transposed if they are to be *turns*ed."""
    return c.permuted(x, [*range(x.rank - 2), x.rank - 1, x.rank - 2]) if turns else x


@translates("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def matmul(c: Call) -> Operand:
    """The product of matrices, either of which may be given transposed; batch dimensions broadcast."""
    a, b = c.tensor(0), c.tensor(1)
    if min(a.rank, b.rank) < 2:
        c.fail(f"{a!r} and {b!r} are no matrices", "save the model again")
    to = c.attributes.get("Tout")  # integers of 8 bits are multiplied, and summed, in more
    a, b = (c.cast(x, to) if isinstance(to, DType) else x for x in (a, b))
    turns = ("transpose_a", "transpose_b") if c.op == "MatMul" else ("adj_x", "adj_y")
    return c.add("matmul", _turned(c, a, turns=c.flag(turns[0])), _turned(c, b, turns=c.flag(turns[1])))


@translates("Einsum")
def einsum_(c: Call) -> Operand:
    """A sum of products over labelled dimensions."""
    return einsum(c, c.tensors(), c.text("equation"))


@translates("MatrixDeterminant")
def determinant(c: Call) -> Operand:
    """The determinants of matrices."""
    return c.add("det", c.tensor())


@translates("Cross")
def cross(c: Call) -> Operand:
    """The products of vectors in space, along the last dimension."""
    a, b = c.tensor(0), c.tensor(1)
    turned = [c.add("gather", x, c.vector(order), axis=x.rank - 1) for x in (a, b) for order in ((1, 2, 0), (2, 0, 1))]
    return c.add("sub", c.add("mul", turned[0], turned[3]), c.add("mul", turned[1], turned[2]))


@translates("Cholesky")
def cholesky(c: Call) -> Operand:
    """The lower triangular factors of symmetric matrices."""
    return c.add_many("cholesky", c.tensor())[0]


@translates("MatrixInverse")
def inverse(c: Call) -> Operand:
    """The inverses of square matrices, or of their transposes."""
    return matrices.inverted(c, c.tensor(), transposed=c.flag("adjoint"))


@translates("MatrixSolve")
def solve(c: Call) -> Operand:
    """The X of which A X, or A' X, is a matrix."""
    return matrices.solved_by_elimination(c, c.tensor(0), c.tensor(1), transposed=c.flag("adjoint"))


@translates("MatrixTriangularSolve")
def solve_triangular(c: Call) -> Operand:
    """The X of which A X, or A' X, is a matrix, where one triangle of A counts; batch dimensions broadcast."""
    a, right, lower, turns = c.tensor(0), c.tensor(1), c.flag("lower", True), c.flag("adjoint")
    if a.rank != right.rank:
        c.fail(f"{a!r} and {right!r} have other batch dimensions", "give both the same ones")
    return c.add("solve_triangular", _turned(c, a, turns=turns), right, upper=lower == turns, unit=False)


@translates("LogMatrixDeterminant", outputs=("sign", "log_abs_determinant"))
def log_determinant(c: Call) -> Results:
    """The signs of the determinants of matrices, and the logarithms of their sizes."""
    packed, rows = c.add_many("lu", c.tensor())
    factors = matrices.diagonal(c, packed)
    last = factors.rank - 1
    n = matrices.sides(c, packed)[0]
    stays = c.add("equal", c.cast(rows, i64), c.add("range", start=0, size=n, step=1))
    swaps = c.add("where", stays, c.scalar(1, factors.dtype), c.scalar(-1, factors.dtype))
    signs = c.add("mul", c.add("sign", factors), swaps)
    sizes = c.add("reduce_sum", c.add("log", c.add("abs", factors)), axes=(last,), keepdims=False)
    return c.add("reduce_prod", signs, axes=(last,), keepdims=False), sizes


@translates("Qr", outputs=("q", "r"))
def qr(c: Call) -> Results:
    """Orthogonal columns, and an upper triangle, of which matrices are the products."""
    x = c.tensor()
    m, n = matrices.sides(c, x)
    packed, tau = c.add_many("householder_qr", x)
    rows = m if c.flag("full_matrices") else min(m, n)
    upper = c.add("trilu", packed, k=0, upper=True)
    kept = c.add("slice", upper, starts=(0,), ends=(rows,), axes=(x.rank - 2,), steps=(1,))
    return matrices.orthogonal(c, packed, tau, rows), kept


@translates("SelfAdjointEigV2", outputs=("e", "v"))
def eigen(c: Call) -> Results:
    """The eigenvalues of symmetric matrices, of which the lower triangles count, in ascending order, and their vectors."""
    x = c.tensor()
    lower = c.add("trilu", x, k=0, upper=False)
    whole = c.add("add", lower, matrices.turned(c, c.add("trilu", x, k=-1, upper=False)))
    return matrices.symmetric_eigen(c, whole)


@translates("Svd", outputs=("s", "u", "v"))
def svd(c: Call) -> Results:
    """The singular values of matrices, in descending order, and their vectors."""
    x = c.tensor()
    if not c.flag("compute_uv", True):
        none = c.constant(np.zeros(0, x.dtype.numpy))
        return matrices.singular_values(c, x), none, none
    u, s, v = matrices.singular_factors(c, x, full=c.flag("full_matrices"))
    return s, u, matrices.turned(c, v)
