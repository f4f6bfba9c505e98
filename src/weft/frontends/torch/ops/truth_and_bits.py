"""Logic of truth values, in which any number but zero is true, and of the bits of integers."""

from __future__ import annotations

from typing import Final

from weft.frontends.torch.call import Call
from weft.frontends.torch.registry import Translation, translates
from weft.graph.builder import Operand, Results
from weft.graph.composites.numerics.special_functions import is_negative
from weft.support.dtypes import bool_

_OF_TRUTH: Final = {"and": "logical_and", "or": "logical_or", "xor": "logical_xor"}


def _truth(c: Call, name: str) -> Operand:
    """Returns whether each element of an argument is not zero."""
    x = c.tensor(name)
    return x if x.dtype is bool_ else c.add("logical_not", c.add("equal", x, c.scalar(0, x.dtype)))


@translates("logical_not")
def logical_not(c: Call) -> Results:
    """Tells which elements are zero."""
    x = c.tensor()
    return c.add("logical_not", x) if x.dtype is bool_ else c.add("equal", x, c.scalar(0, x.dtype))


def _logical(op: str) -> Translation:
    return lambda c: c.add(op, _truth(c, "self"), _truth(c, "other"))


@translates("bitwise_not")
def bitwise_not(c: Call) -> Results:
    """Not, of truth values; the bits of integers."""
    x = c.tensor()
    return c.add("logical_not" if x.dtype is bool_ else "bit_not", x)


def _bitwise(word: str) -> Translation:
    """The bits of integers; truth values as they are."""

    def translate(c: Call) -> Results:
        a, b = c.operand("self", c.dtype), c.operand("other", c.dtype)
        return c.add(_OF_TRUTH[word] if c.dtype is bool_ else f"bit_{word}", a, b)

    return translate


for _word, _op in _OF_TRUTH.items():
    translates(f"logical_{_word}")(_logical(_op))
    translates(f"bitwise_{_word}.Tensor", f"bitwise_{_word}.Scalar", f"__{_word}__.Tensor", f"__{_word}__.Scalar")(
        _bitwise(_word)
    )


@translates("signbit")
def signbit(c: Call) -> Results:
    """Tells which elements have a minus, zeros among them."""
    return is_negative(c, c.tensor())


@translates("copysign.Tensor", "copysign.Scalar")
def copysign(c: Call) -> Results:
    """self with the signs of other."""
    x, sign = c.operand("self", c.dtype), c.operand("other", c.dtype)
    size = c.add("abs", x)
    return c.add("where", is_negative(c, sign), c.add("neg", size), size)
