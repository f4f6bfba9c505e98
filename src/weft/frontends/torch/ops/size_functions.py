"""Functions of sizes: numbers that are known when the program is compiled, or symbolic; and checks of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from weft.frontends.torch.call import Call
from weft.frontends.torch.registry import Translation, translates
from weft.graph import Value
from weft.graph.builder import CompileTimeConstant, Operand, Results, total
from weft.ir import Expr
from weft.support.dtypes import f64, i64
from weft.support.errors import UnknownValues


@translates(
    "_assert_tensor_metadata",
    "_assert_async.msg",
    "_assert_scalar",
    "sym_constrain_range",
    "sym_constrain_range_for_size",
    "sym_storage_offset",
    *(f"_operator.{name}" for name in ("eq", "ne", "lt", "le", "gt", "ge", "and_", "or_", "not_")),
    "torch.sym_not",
)
def checked(c: Call) -> Results:
    """Nothing: the program's requirements on its sizes are checked as far as Weft needs them, and offsets are only checked."""
    return ()


@translates("sym_size.int")
def sym_size(c: Call) -> Results:
    """A size, as an integer that is known when the program is compiled, or symbolic."""
    x = c.tensor()
    return c.size(x.shape[c.axis("dim", x.rank)])


@translates("sym_numel")
def sym_numel(c: Call) -> Results:
    """The number of elements."""
    return c.size(total(c.tensor().shape))


@translates("_local_scalar_dense", "item")
def item(c: Call) -> Results:
    """The element of a tensor that is a size of others."""
    x = c.tensor()
    if not x.dtype.is_int:
        c.fail(
            f"a number of type {x.dtype} that decides how the program runs is not supported",
            "use a tensor in its place",
        )
    return c.size(c.late_number(c.cast(x, i64), "item", "the element of a tensor"))


def _of_numbers(function: Callable[..., Any]) -> Translation:
    """A function of numbers that are known."""
    return lambda c: _computed(c, function) if _are_known(c) else _unknown(c)


def _unknown(c: Call) -> NoReturn:
    c.fail("this function of symbolic sizes is not supported", "export it with static shapes", UnknownValues)


def _real(function: Callable[..., Any], op: str) -> Translation:
    """A function of numbers; of symbolic sizes it is a number that the model computes, and no size."""

    def translate(c: Call) -> Results:
        if _are_known(c):
            return _computed(c, function)
        return c.add(op, *[c.kept(c.operand(name, f64)) for name in _given(c)])

    return translate


def _given(c: Call) -> list[str]:
    return [name for name in ("self", "other") if name in c.arguments]


def _are_known(c: Call) -> bool:
    """Tells whether the arguments are numbers now."""

    def is_known(v: Any) -> bool:
        return not isinstance(v, Value) and not (
            isinstance(v, CompileTimeConstant) and isinstance(v.array.flat[0], Expr)
        )

    return all(is_known(c.arguments[name]) for name in _given(c))


def _computed(c: Call, function: Callable[..., Any]) -> Operand:
    made = function(*[c.value(name) for name in _given(c)])
    return c.size(made) if isinstance(made, int) else CompileTimeConstant(np.asarray(made, np.float64))


translates("_operator.truediv")(_real(lambda a, b: a / b, "div"))
translates("_operator.pow")(_real(lambda a, b: a**b, "power"))
translates("math.ceil")(_of_numbers(math.ceil))
translates("math.floor")(_of_numbers(math.floor))
translates("math.trunc")(_of_numbers(math.trunc))
translates("torch.sym_float")(_real(float, "identity"))
translates("torch.sym_int")(_of_numbers(int))


@translates("_operator.neg")
def neg(c: Call) -> Results:
    """A number, or a size, negated."""
    return c.size(-c.value("self")) if not _are_known(c) else _computed(c, lambda a: -a)


translates("torch._sym_sqrt")(_real(math.sqrt, "sqrt"))


@translates("torch.sym_sum")
def sym_sum(c: Call) -> Results:
    """The sum of a list of sizes."""
    return c.size(sum(c.sizes("self")))


@translates("torch.sym_max")
def sym_max(c: Call) -> Results:
    """The larger of two sizes."""
    return c.add("maximum", c.operand("self", i64), c.operand("other", i64))


@translates("torch.sym_min")
def sym_min(c: Call) -> Results:
    """The smaller of two sizes."""
    return c.add("minimum", c.operand("self", i64), c.operand("other", i64))
