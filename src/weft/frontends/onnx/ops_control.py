"""Control flow."""

from __future__ import annotations

from weft.frontends.onnx.call import Call, Results
from weft.frontends.onnx.known import Known
from weft.frontends.onnx.registry import translates


@translates("If", limits="branches whose outputs differ in shape or type, where the condition is not constant")
def if_(c: Call) -> Results:
    """One branch where the condition is known; else both are computed and one result is chosen."""
    branches = (c.attributes["then_branch"], c.attributes["else_branch"])
    condition = c.input(0)
    if isinstance(condition, Known) and not condition.symbolic:
        return tuple(c.subgraph(branches[0 if condition.array.all() else 1], {}))
    chosen = c.reshape(condition, ())
    pairs = list(zip(*(c.subgraph(b, {}) for b in branches), strict=True))
    for a, b in pairs:
        if a.dtype is not b.dtype or a.shape != b.shape:
            c.fail(f"its branches give {a!r} and {b!r}; both must have one shape, since the condition is not constant")
    return tuple([c.add("where", chosen, a, b) for a, b in pairs])
