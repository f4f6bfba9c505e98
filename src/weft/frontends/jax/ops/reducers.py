"""The functions of the regions of reductions, scatters and sorts, recognized among known ones.

Regions are read as formulas of their arguments, in which JAX's guards for zeros and NaN (`select(x == 0, 0, x)`,
`select(x != x, NaN, x)`) are taken for x itself, and functions that are called are written out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from weft.frontends.jax.call import Call
from weft.frontends.jax.registry import key_of
from weft.frontends.jax.text.operations import Region

Formula: TypeAlias = "tuple[Any, ...]"
"""("argument", k), ("constant",), or the name of an operation, its direction or "", and the formulas of its operands."""

COMMUTATIVE: Final = ("add", "multiply", "maximum", "minimum", "and", "or", "xor")
_FIXED: Final = ("constant", "outside")
_LARGEST: Final = 500
"""Operations of a region that is read as a formula; others are none that are known."""


def formulas_of(region: Region) -> list[Formula] | None:
    """Returns the formulas of a region's results; None for one that is more than a formula."""
    known: dict[str, Formula] = {name: ("argument", k) for k, name in enumerate(region.arguments)}
    if len(region.operations) > _LARGEST:
        return None
    for o in region.operations[:-1]:
        key = key_of(o)
        if o.regions or len(o.results) != 1:
            return None
        operands = [known.get(n, ("outside", n)) for n in o.operands]
        direction = o.attributes.get("comparison_direction", o.words[0] if o.words and key == "compare" else "")
        made: Formula = ("constant",) if key == "constant" else (key, str(direction), *operands)
        known[o.results[0]] = _without_special_values(made)
    return [known.get(n, ("outside", n)) for n in region.operations[-1].operands]


def _without_special_values(f: Formula) -> Formula:
    """Returns x for `select(x == constant, constant, x)` and for `select(x != x, constant, x)`; constants may be outside."""
    if f[0] != "select" or len(f) != 5 or f[3][0] not in _FIXED:
        return f
    condition, value = f[2], f[4]
    special = condition[:2] in (("compare", "EQ"), ("compare", "NE"))
    return value if special and condition[2] == value and condition[3] in (value, f[3]) else f


def reducer_of(c: Call) -> str | None:
    """Returns the name of the operation by which a reduction combines two elements; None if it is none alone."""
    applies = c.operation.attributes.get("applies")
    if isinstance(applies, str):
        return applies.rpartition(".")[2]
    return reducer_in(c.operation.regions[0]) if c.operation.regions else None


def reducer_in(region: Region) -> str | None:
    """Returns the name of the operation by which a region of two arguments combines them; None if it is none alone."""
    found = formulas_of(region)
    if found is None or len(found) != 1 or found[0][0] not in COMMUTATIVE:
        return None
    return found[0][0] if set(found[0][2:]) == {("argument", 0), ("argument", 1)} else None


def updater_of(c: Call) -> str | None:
    """Returns how a scatter combines an element with its update: by the name of an operation, or "none" for the update itself."""
    found = formulas_of(c.operation.regions[0]) if c.operation.regions else None
    return "none" if found == [("argument", 1)] else reducer_of(c)


def place_of_extreme(region: Region) -> str | None:
    """Returns GT or LT for a reducer of (value, index) pairs that keeps the largest or smallest, the first of equal ones.

    The arguments are value, index, other value, other index, as JAX lowers argmax and argmin.
    """
    found = formulas_of(region)
    if found is None or len(found) != 2:
        return None
    x, i, y, j = (("argument", k) for k in range(4))
    for direction in ("GT", "LT"):
        chosen = ("or", "", ("compare", direction, x, y), ("compare", "NE", x, x))
        tied = ("and", "", ("compare", "EQ", x, y), ("compare", "LT", i, j))
        if found == [("select", "", chosen, x, y), ("select", "", ("or", "", chosen, tied), i, j)]:
            return direction
    return None


@dataclass(frozen=True)
class Key:
    """One key of a sort: the number of the operand, and whether the largest comes first."""

    operand: int
    descending: bool


def keys_of(region: Region) -> list[Key] | None:
    """Returns the keys by which a comparator orders, the first one deciding; None for one that is not read.

    A comparator of several keys is `x0 < y0 or (x0 == y0 and (x1 < y1 or ...))`.
    """
    found = formulas_of(region)
    if found is None or len(found) != 1:
        return None
    rest, keys = found[0], list[Key]()
    while rest[0] == "or" and rest[3][0] == "and":
        first, tied = rest[2], rest[3]
        key = _key(first)
        if key is None or tied[2] != ("compare", "EQ", *first[2:]):
            return None
        keys.append(key)
        rest = tied[3]
    last = _key(rest)
    return None if last is None else [*keys, last]


def _key(f: Formula) -> Key | None:
    """Returns the key of a comparison of the two values of an operand."""
    if f[0] != "compare" or f[1] not in ("LT", "GT", "LE", "GE") or {v[0] for v in f[2:]} != {"argument"}:
        return None
    left, right = f[2][1], f[3][1]
    if abs(left - right) != 1 or min(left, right) % 2:
        return None
    return Key(min(left, right) // 2, (f[1] in ("GT", "GE")) == (left < right))
