"""Bessel functions."""

from __future__ import annotations

from weft.frontends.torch.call import Call
from weft.frontends.torch.registry import Translation, translates
from weft.graph.builder import Results
from weft.graph.composites.numerics import bessel_series as bessel


def _of_order(kind: str, order: int) -> Translation:
    function = bessel.bessel_j if kind == "j" else bessel.bessel_y
    return lambda c: function(c, c.operand(_argument(c), c.dtype), order)


def _modified(kind: str, order: int, *, scaled: bool) -> Translation:
    function = bessel.bessel_i if kind == "i" else bessel.bessel_k
    return lambda c: function(c, c.operand(_argument(c), c.dtype), order, scaled=scaled)


def _argument(c: Call) -> str:
    """Returns the name of the one tensor argument: x or self."""
    return "x" if "x" in c.arguments else "self"


for _k in (0, 1):
    translates(f"prims.bessel_j{_k}.default", f"special_bessel_j{_k}")(_of_order("j", _k))
    translates(f"special_bessel_y{_k}")(_of_order("y", _k))
    translates(f"prims.bessel_i{_k}.default", f"special_modified_bessel_i{_k}")(_modified("i", _k, scaled=False))
    translates(f"prims.bessel_i{_k}e.default")(_modified("i", _k, scaled=True))
    translates(f"special_modified_bessel_k{_k}")(_modified("k", _k, scaled=False))
    translates(f"special_scaled_modified_bessel_k{_k}")(_modified("k", _k, scaled=True))


@translates("prims.spherical_bessel_j0.default", "special_spherical_bessel_j0")
def spherical(c: Call) -> Results:
    """sin(x) / x."""
    x = c.operand(_argument(c), c.dtype)
    zero = c.add("equal", x, c.scalar(0, c.dtype))
    one = c.scalar(1, c.dtype)
    return c.add("where", zero, one, c.add("div", c.add("sin", x), c.add("where", zero, one, x)))
