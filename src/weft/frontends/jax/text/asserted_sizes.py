"""The sizes of arguments that a program asserts to be equal, as JAX writes for dimensions of one name.

%0 = get_dimension_size %arg0, dim = 0
%1 = get_dimension_size %arg1, dim = 0        (%arg1, 0) is (%arg0, 0)
%2 = compare EQ, %1, %0
custom_call @shape_assertion(%2, ...)
"""

from __future__ import annotations

from typing import TypeAlias

from weft.frontends.jax.text.operations import Operation, Region

Place: TypeAlias = tuple[str, int]
"""An argument, and one of its dimensions."""


def equal_sizes(body: Region) -> dict[Place, Place]:
    """Returns for sizes of arguments the size, of an earlier argument or dimension, that they are asserted to equal."""
    sizes: dict[str, Place] = {}
    compared: dict[str, tuple[Place, Place]] = {}
    found: dict[Place, Place] = {}
    for o in body.operations:
        if o.name.endswith("get_dimension_size"):
            dimension = _dimension(o)
            if dimension is not None:
                sizes[o.results[0]] = o.operands[0], dimension
        elif o.name.endswith("compare") and _is_equality(o) and all(v in sizes for v in o.operands):
            compared[o.results[0]] = sizes[o.operands[0]], sizes[o.operands[1]]
        elif o.name.endswith("custom_call") and o.operands and o.operands[0] in compared:
            place, other = compared[o.operands[0]]
            found[place] = found.get(other, other)
    return found


def _dimension(o: Operation) -> int | None:
    found = o.attributes.get("dim", o.attributes.get("dimension"))
    return found if isinstance(found, int) else None


def _is_equality(o: Operation) -> bool:
    return "EQ" in (*o.words, str(o.attributes.get("comparison_direction", "")))
