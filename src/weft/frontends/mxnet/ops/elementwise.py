"""Operators on each element, of one tensor, of two, and of a tensor and a number; `_npi_add` are those of `mxnet.np`."""

from __future__ import annotations

from functools import reduce
from typing import Final

from weft.frontends.mxnet.call import Call
from weft.frontends.mxnet.registry import Translation, translates
from weft.graph.builder import Operand
from weft.support.dtypes import bool_


def _unary(op: str) -> Translation:
    return lambda c: c.add(op, c.input())


for _name, _op in {
    **{
        n: n
        for n in ("abs", "ceil", "cos", "cosh", "erf", "exp", "floor", "log", "reciprocal", "relu", "rsqrt", "sigmoid")
    },
    **{n: n for n in ("sign", "sin", "sinh", "softsign", "sqrt", "square", "tan", "tanh")},
    **{
        f"_npi_{n}": n
        for n in ("abs", "ceil", "cos", "exp", "floor", "log", "reciprocal", "sign", "sin", "sqrt", "square")
    },
    **{f"_npi_{n}": n for n in ("sinh", "cosh", "tan", "tanh")},
    **{f"_npx_{n}": n for n in ("relu", "sigmoid")},
    "_npi_absolute": "abs",
    "_npi_negative": "neg",
    "arccos": "acos",
    "_npi_arccos": "acos",
    "arccosh": "acosh",
    "_npi_arccosh": "acosh",
    "arcsin": "asin",
    "_npi_arcsin": "asin",
    "arcsinh": "asinh",
    "_npi_arcsinh": "asinh",
    "arctan": "atan",
    "_npi_arctan": "atan",
    "arctanh": "atanh",
    "_npi_arctanh": "atanh",
    "negative": "neg",
    "LogisticRegressionOutput": "sigmoid",
}.items():
    translates(_name)(_unary(_op))


def combined(c: Call, how: str, a: Operand, b: Operand) -> Operand:
    """Returns two tensors combined by an operator of the table below; comparisons give numbers."""
    op, swapped, negated = _BINARY[how]
    made = c.add(op, *((b, a) if swapped else (a, b)))
    made = c.add("logical_not", made) if negated else made
    return c.cast(made, a.dtype)


_BINARY: Final = {
    "add": ("add", False, False),
    "plus": ("add", False, False),
    "sub": ("sub", False, False),
    "minus": ("sub", False, False),
    "mul": ("mul", False, False),
    "div": ("div", False, False),
    "mod": ("floor_mod", False, False),
    "power": ("power", False, False),
    "maximum": ("maximum", False, False),
    "minimum": ("minimum", False, False),
    "equal": ("equal", False, False),
    "not_equal": ("equal", False, True),
    "lesser": ("less", False, False),
    "lesser_equal": ("less_equal", False, False),
    "greater": ("less", True, False),
    "greater_equal": ("less_equal", True, False),
}


def _two(how: str) -> Translation:
    return lambda c: combined(c, how, c.input(0), c.input(1))


def _compared(how: str) -> Translation:
    """A comparison that gives truth values, as NumPy's do."""
    return lambda c: c.cast(combined(c, how, c.input(0), c.input(1)), bool_)


def _compared_with_number(how: str) -> Translation:
    number = _with_number(how, first=False)
    return lambda c: c.cast(number(c), bool_)  # type: ignore[arg-type]


def _with_number(how: str, *, first: bool) -> Translation:
    """Combines a tensor with the attribute `scalar`, which is *first* or second."""

    def translate(c: Call) -> Operand:
        x = c.input()
        k = c.scalar(c.number("scalar"), x.dtype)
        return combined(c, how, *((k, x) if first else (x, k)))

    return translate


for _how in _BINARY:
    translates(f"broadcast_{_how}", f"_{_how}")(_two(_how))
    translates(f"_{_how}_scalar")(_with_number(_how, first=False))
for _how in ("add", "sub", "mul", "div"):
    translates(f"elemwise_{_how}")(_two(_how))
for _how in ("minus", "div", "power", "mod"):
    translates(f"_r{_how}_scalar")(_with_number(_how, first=True))
for _name, _how in {"add": "add", "subtract": "sub", "multiply": "mul", "true_divide": "div", "power": "power"}.items():
    translates(f"_npi_{_name}")(_two(_how))
    translates(f"_npi_{_name}_scalar")(_with_number(_how, first=False))
for _name in ("maximum", "minimum", "mod"):
    translates(f"_npi_{_name}")(_two(_name))
    translates(f"_npi_{_name}_scalar")(_with_number(_name, first=False))
for _name, _how in {"subtract": "minus", "true_divide": "div", "power": "power", "mod": "mod"}.items():
    translates(f"_npi_r{_name}_scalar")(_with_number(_how, first=True))
for _name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"):
    translates(f"_npi_{_name}")(_compared(_name.replace("less", "lesser")))
    translates(f"_npi_{_name}_scalar")(_compared_with_number(_name.replace("less", "lesser")))
for _name, _how in {"PlusScalar": "add", "MinusScalar": "sub", "MulScalar": "mul", "DivScalar": "div"}.items():
    translates(f"_{_name}")(_with_number(_how, first=False))


for _name in ("add", "sub", "mul", "div"):
    translates(f"__{_name}_scalar__")(_with_number(_name, first=False))
translates("__pow_scalar__")(_with_number("power", first=False))
for _name, _how in {"sub": "minus", "div": "div", "pow": "power"}.items():
    translates(f"__r{_name}_scalar__")(_with_number(_how, first=True))


@translates("add_n", "ElementWiseSum")
def add_n(c: Call) -> Operand:
    """The sum of all inputs."""
    return reduce(lambda a, b: c.add("add", a, b), c.all_inputs())


@translates("clip")
def clip(c: Call) -> Operand:
    """Elements kept between two numbers."""
    x = c.input()
    return c.add("clip", x, c.scalar(c.number("a_min"), x.dtype), c.scalar(c.number("a_max"), x.dtype))


@translates("where")
def where(c: Call) -> Operand:
    """Chooses between two tensors."""
    condition, x = c.cast(c.input(0), bool_), c.input(1)
    if condition.rank == 1 and x.rank > 1:  # one for each row
        condition = c.reshape(condition, [condition.shape[0], *[1] * (x.rank - 1)])
    return c.add("where", condition, x, c.input(2))


@translates("Cast", "cast")
def cast(c: Call) -> Operand:
    """Elements as another type."""
    return c.cast(c.input(), c.dtype())
