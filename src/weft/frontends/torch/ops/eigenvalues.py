"""Eigenvalues of matrices that need not be symmetric, and factors of symmetric ones that need not be definite."""

from __future__ import annotations

from typing import Any

from weft.frontends.torch.call import Call, common_shape
from weft.frontends.torch.complex_numbers import Complex, translates_complex
from weft.frontends.torch.registry import translates
from weft.graph.builder import Operand, Results
from weft.graph.composites.numerics import general_eigen


@translates_complex("linalg_eig")
def eig(c: Call) -> Any:
    """The eigenvalues of real matrices, and their vectors, of length 1, as columns."""
    values, vectors = general_eigen.eigen(c, _real(c))
    return Complex(*values), Complex(*vectors)


@translates_complex("linalg_eigvals", "_linalg_eigvals")
def eigvals(c: Call) -> Any:
    """The eigenvalues of real matrices."""
    return Complex(*general_eigen.eigenvalues(c, _real(c)))


@translates("linalg_ldl_factor_ex")
def ldl_factor(c: Call) -> Results:
    """The factors in one, the rows exchanged, and the last pivot that is zero."""
    return c.add_many("ldl", c.tensor())


@translates("linalg_ldl_solve")
def ldl_solve(c: Call) -> Results:
    """The X of which A X is B, by the factors of A."""
    factors, pivots, b = c.tensor("LD"), c.tensor("pivots"), c.tensor("B")
    lead = common_shape([factors.shape[:-2], b.shape[:-2]])
    factors, b = (c.add("expand", x, shape=(*lead, *x.shape[-2:])) for x in (factors, b))
    return c.add("ldl_solve", factors, c.add("expand", pivots, shape=(*lead, pivots.shape[-1])), b)


def _real(c: Call) -> Operand:
    if isinstance(c.arguments["self"], Complex):
        c.fail("eigenvalues of complex matrices are not supported", "give real ones, or symmetric ones to eigh")
    return c.tensor()
