"""Operators on complex numbers."""

from __future__ import annotations

from functools import reduce
from itertools import product
from typing import Any, Final

from weft.frontends.torch.call import Call, common_shape
from weft.frontends.torch.complex_numbers import (
    COMPLEX,
    Complex,
    ComplexTranslation,
    joined,
    part_by_part,
    parts,
    taken_apart,
    translates_complex,
)
from weft.frontends.torch.ops.reduction import norm_of
from weft.frontends.torch.registry import TABLE, spelled
from weft.graph.builder import Operand
from weft.graph.composites.einsum import einsum as sum_of_products
from weft.graph.composites.numerics import complex_numbers as pairs
from weft.graph.composites.numerics import special_functions

PART_BY_PART: Final = frozenset(
    map(
        spelled,
        (
            *(
                "view",
                "reshape",
                "_unsafe_view",
                "flatten.using_ints",
                "unflatten.int",
                "permute",
                "transpose.int",
                "t",
                "mT",
            ),
            *(
                "unsqueeze",
                "squeeze",
                "squeeze.dim",
                "squeeze.dims",
                "expand",
                "repeat",
                "cat",
                "stack",
                "split.Tensor",
            ),
            *(
                "split_with_sizes",
                "chunk",
                "slice.Tensor",
                "select.int",
                "flip",
                "clone",
                "alias",
                "detach",
                "contiguous",
            ),
            *(
                "lift_fresh_copy",
                "as_strided",
                "index.Tensor",
                "index_select",
                "gather",
                "neg",
                "sum",
                "sum.dim_IntList",
            ),
            *(
                "mean",
                "mean.dim",
                "cumsum",
                "where.self",
                "tril",
                "triu",
                "add.Tensor",
                "add.Scalar",
                "sub.Tensor",
                "sub.Scalar",
            ),
            *("rsub.Scalar", "rsub.Tensor", "unbind.int", "copy", "zeros_like", "zeros", "empty_like", "new_zeros"),
            *("empty.memory_format", "index_put", "where.ScalarOther", "where.ScalarSelf", "where.Scalar"),
            *("masked_fill.Scalar", "masked_fill.Tensor", "fill.Scalar", "fill.Tensor", "zero", "roll", "diff"),
            *("detach_", "narrow", "view_as", "expand_as", "unfold", "unfold_copy", "diagonal"),
            *("broadcast_tensors", "meshgrid", "meshgrid.indexing"),
            *("select_scatter", "slice_scatter", "diagonal_scatter"),
        ),
    )
)
"""Operators that move elements, or are linear in them with real numbers as factors."""


MOST_FACTORS: Final = 64
"""The largest whole power that is made by products."""


def complex_translation(name: str) -> ComplexTranslation | None:
    """Returns the translation of an operator that is given complex numbers, or makes them; None where there is none."""
    if name in PART_BY_PART:
        return lambda c: part_by_part(c, TABLE[name])
    return COMPLEX.get(name)


@translates_complex("view_as_complex")
def view_as_complex(c: Call) -> Any:
    """A real tensor [..., 2] as a complex one."""
    return taken_apart(c, c.tensor())


@translates_complex("view_as_real")
def view_as_real(c: Call) -> Any:
    """A complex tensor as a real one [..., 2]."""
    return joined(c, parts(c, "self"))


@translates_complex("complex")
def complex_(c: Call) -> Any:
    """Complex numbers of two parts, broadcast together."""
    return _together(c, c.tensor("real"), c.tensor("imag"))


@translates_complex("polar")
def polar(c: Call) -> Any:
    """Complex numbers of lengths and angles."""
    length, angle = c.tensor("abs"), c.tensor("angle")
    return _together(c, c.add("mul", length, c.add("cos", angle)), c.add("mul", length, c.add("sin", angle)))


@translates_complex("real")
def real(c: Call) -> Any:
    """The real part."""
    return parts(c, "self").real


@translates_complex("imag")
def imaginary(c: Call) -> Any:
    """The imaginary part."""
    return parts(c, "self").imaginary


@translates_complex("_conj", "_conj_physical", "conj_physical")
def conjugate(c: Call) -> Any:
    """The imaginary part negated."""
    x = parts(c, "self")
    return Complex(x.real, c.add("neg", x.imaginary))


@translates_complex("resolve_conj", "resolve_neg")
def resolved(c: Call) -> Any:
    """The numbers as they are: Weft holds no conjugates as views."""
    return parts(c, "self")


@translates_complex("mul.Tensor", "mul.Scalar")
def mul(c: Call) -> Any:
    """The product."""
    return _product(c, parts(c, "self"), parts(c, "other"), "mul")


@translates_complex("mm", "bmm")
def mm(c: Call) -> Any:
    """The product of two matrices, or of two batches of them."""
    return _product(c, parts(c, "self"), parts(c, "mat2"), "matmul")


@translates_complex("matmul")
def matmul(c: Call) -> Any:
    """The product of matrices, batches of them, or vectors."""
    return _product(c, parts(c, "self"), parts(c, "other"), "matmul")


@translates_complex("addmm", "baddbmm")
def addmm(c: Call) -> Any:
    """The product of two matrices, or of several, added to a third, each with a factor."""
    first, second = ("mat1", "mat2") if "mat1" in c.arguments else ("batch1", "batch2")
    made = _with_factor(c, "alpha", _product(c, parts(c, first), parts(c, second), "matmul"))
    if c.value("beta", 1) == 0:  # which hides a NaN
        return made
    return _sum(c, _with_factor(c, "beta", parts(c, "self")), made)


def _with_factor(c: Call, name: str, x: Complex) -> Complex:
    return x if c.value(name, 1) == 1 else _product(c, parts(c, name), x, "mul")


@translates_complex("linear")
def linear(c: Call) -> Any:
    """Rows multiplied by a transposed matrix, and biases."""
    weight = parts(c, "weight")
    turned = Complex(*[c.transpose(v, (1, 0)) for v in (weight.real, weight.imaginary)])
    made = _product(c, parts(c, "input"), turned, "matmul")
    return made if c.arguments.get("bias") is None else _sum(c, made, parts(c, "bias"))


@translates_complex("einsum")
def einsum(c: Call) -> Any:
    """A sum of products by named dimensions: of each choice of a real or an imaginary part of each of the complex tensors."""
    given = [(v.real, v.imaginary) if isinstance(v, Complex) else (c.cast(v, c.dtype),) for v in c.arguments["tensors"]]
    sums: list[list[Operand]] = [[], []]
    for chosen in product(*[range(len(v)) for v in given]):
        factors = [v[k] for v, k in zip(given, chosen, strict=True)]
        made = sum_of_products(c, factors, str(c.value("equation")))
        turns = sum(chosen)  # the power of the imaginary unit
        sums[turns % 2].append(c.add("neg", made) if turns % 4 > 1 else made)
    return Complex(*[reduce(lambda a, b: c.add("add", a, b), part) for part in sums])


@translates_complex("_operator.getitem")
def getitem(c: Call) -> Any:
    """One of several results."""
    return c.arguments["self"][c.arguments["other"]]


@translates_complex("div.Tensor", "div.Scalar")
def div(c: Call) -> Any:
    """The quotient."""
    x = parts(c, "self")
    if not isinstance(c.arguments["other"], Complex | complex):
        by = parts(c, "other").real
        return Complex(c.add("div", x.real, by), c.add("div", x.imaginary, by))
    return _product(c, x, _reciprocal(c, parts(c, "other")), "mul")


@translates_complex("reciprocal")
def reciprocal(c: Call) -> Any:
    """One divided by each number."""
    return _reciprocal(c, parts(c, "self"))


@translates_complex("abs")
def absolute(c: Call) -> Any:
    """The length."""
    x = parts(c, "self")
    return pairs.length(c, (x.real, x.imaginary))


@translates_complex("linalg_vector_norm")
def vector_norm(c: Call) -> Any:
    """The norm of an order over dimensions."""
    return norm_of(c, absolute(c))


@translates_complex("isfinite")
def is_finite(c: Call) -> Any:
    """Where neither part is infinite or NaN."""
    made = part_by_part(c, TABLE[spelled("isfinite")])
    return c.add("logical_and", made.real, made.imaginary)


@translates_complex("angle")
def angle(c: Call) -> Any:
    """The angle, between -pi and pi."""
    x = parts(c, "self")
    return special_functions.atan2(c, x.imaginary, x.real)


@translates_complex("exp")
def exp(c: Call) -> Any:
    """The exponential."""
    x = parts(c, "self")
    return Complex(*pairs.exponential(c, (x.real, x.imaginary)))


@translates_complex("pow.Tensor_Scalar")
def power(c: Call) -> Any:
    """A whole power, by squares."""
    x, exponent = parts(c, "self"), c.value("exponent")
    if not isinstance(exponent, int | float) or not float(exponent).is_integer() or abs(exponent) > MOST_FACTORS:
        c.fail(f"{exponent} is no whole power of up to {MOST_FACTORS}", "compute it by abs() and angle() in the module")
    if exponent == 0:
        return Complex(*[c.add("full", shape=x.shape, value=v, dtype=c.dtype) for v in (1, 0)])
    made = x
    for digit in f"{abs(int(exponent)):b}"[1:]:
        made = _product(c, made, made, "mul")
        made = _product(c, made, x, "mul") if digit == "1" else made
    return _reciprocal(c, made) if exponent < 0 else made


@translates_complex("scalar_tensor")
def scalar_tensor(c: Call) -> Any:
    """A number as a tensor."""
    return parts(c, "s")


@translates_complex("ones_like", "ones", "full", "full_like", "new_full", "new_ones")
def filled(c: Call) -> Any:
    """One number over and over."""
    like = c.arguments.get("self")
    number = complex(c.value("fill_value", 1))
    shape = like.shape if isinstance(like, Complex) and "size" not in c.arguments else tuple(c.sizes("size"))
    made = [c.add("full", shape=shape, value=v, dtype=c.dtype) for v in (number.real, number.imag)]
    return Complex(*made)


@translates_complex("constant_pad_nd", "pad")
def padded(c: Call) -> Any:
    """The tensor with zeros around, or with elements of its own."""
    if c.value("value", 0):
        c.fail("padding complex numbers with others than zero is not supported", "pad with zero")
    return part_by_part(c, TABLE[spelled("pad")])


@translates_complex("eq.Tensor", "eq.Scalar")
def equal(c: Call) -> Any:
    """Where both parts are equal."""
    return _equal(c)


@translates_complex("ne.Tensor", "ne.Scalar")
def not_equal(c: Call) -> Any:
    """Where one of the parts differs."""
    return c.add("logical_not", _equal(c))


@translates_complex("isnan")
def is_nan(c: Call) -> Any:
    """Where one of the parts is NaN."""
    x = c.arguments["self"]
    return c.add("logical_or", c.add("is_nan", x.real), c.add("is_nan", x.imaginary))


@translates_complex("prims.convert_element_type.default", "_to_copy", "to.dtype", "to.dtype_layout", "to.device")
def converted(c: Call) -> Any:
    """Numbers of another type: real ones become complex, and of complex ones the real part is left where real are asked for."""
    x, wanted = parts(c, "a" if "a" in c.arguments else "self"), c.arguments.get("dtype")
    return x if wanted is None or wanted.is_complex else x.real


@translates_complex("to.other", "type_as")
def converted_alike(c: Call) -> Any:
    """Numbers of the type of others: complex, or the real part."""
    x = parts(c, "self")
    return x if isinstance(c.arguments["other"], Complex) else x.real


def _equal(c: Call) -> Operand:
    x, y = (c.arguments[name] for name in ("self", "other"))
    like = next(v for v in (x, y) if isinstance(v, Complex))
    given = Call(c.evaluator, c.source, c.arguments, like.dtype, like.dtype)
    a, b = parts(given, "self"), parts(given, "other")
    return pairs.equal(c, (a.real, a.imaginary), (b.real, b.imaginary))


def _together(c: Call, real: Operand, imaginary: Operand) -> Complex:
    shape = common_shape([real.shape, imaginary.shape])
    return Complex(c.add("expand", real, shape=shape), c.add("expand", imaginary, shape=shape))


def _sum(c: Call, x: Complex, y: Complex) -> Complex:
    return Complex(c.add("add", x.real, y.real), c.add("add", x.imaginary, y.imaginary))


def _product(c: Call, x: Complex, y: Complex, op: str) -> Complex:
    """Returns the product by *op*: element by element, or of matrices."""
    return Complex(*pairs.product(c, (x.real, x.imaginary), (y.real, y.imaginary), op))


def _reciprocal(c: Call, x: Complex) -> Complex:
    """Returns one divided by each number."""
    return Complex(*pairs.reciprocal(c, (x.real, x.imaginary)))
