"""`gradient`: the derivatives of a result by tensors that it is computed from, as tensor expressions again.

    C = compute((n, m), lambda i, j: sum_(A[i, k] * B[k, j], [k]), "C")
    dA, dB = gradient(C, [A, B], head=dC)

defines

    dA[i, k] = sum over j of dC[i, j] * B[k, j]
    dB[k, j] = sum over i of A[i, k] * dC[i, j]

Reverse mode: from the output back to the inputs, each tensor's *adjoint* is the sum of its readers' contributions. A reader's
instance adds to the element that it reads; `te.inverse` inverts that, so that each element sums over the instances that read
it, in parallel and without atomic operations (Li et al., "Differentiable programming for image processing and deep learning in
Halide", SIGGRAPH 2018, section 4). Where the element that is read depends on data, as a row of an embedding does, each instance
does add to it, one after another (`scatter`). The result is made of formulas like any other: it can be scheduled, fused, and
differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from weft.ir import Expr, const, simplify
from weft.support.errors import GradientError, TypeMismatch
from weft.te.adjoints import Adjoint, Contribution
from weft.te.backward import backward, formula_rule, reading
from weft.te.scan import Scan
from weft.te.scan_gradient import scan_contributions
from weft.te.scatter_gradient import scatter_contributions
from weft.te.scattering import Scatter
from weft.te.tensor import Operation, Tensor, compute


def gradient(output: Tensor, inputs: Sequence[Tensor], head: Tensor | None = None) -> list[Tensor]:
    """Returns, for each of *inputs*, the gradient of `sum(head * output)` by it, of its shape and type.

    *head* has the output's shape and type; it is all ones if it is left out. The gradient by a tensor that
    *output* does not depend on is zero. Raises `GradientError` where a formula on the way has no derivative, and for tensors that
    are not of floats.
    """
    for t in (output, *inputs):
        if not t.dtype.is_float:
            raise GradientError(f"{t.name} is of type {t.dtype}, which has no gradient", hint="cast it to floats")
    if head is not None and not _fits(head, output):
        raise TypeMismatch(f"the head {head.name} has not the shape and the type of {output.name}")
    found = backward([(output, _ones(output) if head is None else reading(head))], inputs, _rule)
    return [_zeros(t) if d is None else d for t, d in zip(inputs, found, strict=True)]


def _fits(head: Tensor, output: Tensor) -> bool:
    same_shape = [simplify(s) for s in head.shape] == [simplify(s) for s in output.shape]
    return same_shape and head.dtype is output.dtype


def _ones(t: Tensor) -> Adjoint:
    return lambda where: const(1, t.dtype)


def _zeros(t: Tensor) -> Tensor:
    def fn(*i: Expr) -> Expr:
        return const(0, t.dtype)

    return compute(t.shape, fn, f"d_{t.name}")


def _rule(op: Operation, heads: Sequence[Adjoint | None], wanted: Callable[[Tensor], bool]) -> Iterable[Contribution]:
    """Returns the contributions of *op* to the adjoints of the tensors that it reads."""
    if isinstance(op, Scan):
        return scan_contributions(op, heads, wanted)
    if isinstance(op, Scatter):
        return scatter_contributions(op, heads, wanted)
    return formula_rule(op, heads, wanted)
