"""Control flow."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import GraphProto

from weft.cost import MOST_SEQUENCE_STEPS
from weft.frontends.onnx.call import Call, Operand, Results
from weft.frontends.onnx.registry import translates
from weft.graph import UNFIT
from weft.graph.builder import CompileTimeConstant
from weft.graph.composites.sequences import element, stack, steps_of
from weft.support.dtypes import bool_
from weft.support.errors import UnknownValues


@translates("If", limits="branches whose outputs differ in shape or type, where the condition is not constant")
def if_(c: Call) -> Results:
    """One branch where the condition is known; else both are computed and one result is chosen."""
    branches = (c.attributes["then_branch"], c.attributes["else_branch"])
    condition = c.input(0)
    if isinstance(condition, CompileTimeConstant) and not condition.symbolic:
        return tuple(c.subgraph(branches[0 if condition.array.all() else 1], {}))
    chosen = c.reshape(condition, ())
    left, right = (c.subgraph(b, {}) for b in branches)
    if len(left) != len(right):
        c.fail(f"its branches have {len(left)} and {len(right)} outputs", UNFIT)
    pairs = list(zip(left, right, strict=True))
    for a, b in pairs:
        if a.dtype is not b.dtype or a.shape != b.shape:
            c.fail(
                f"its branches give {a!r} and {b!r}; both must have one shape, since the condition is not constant",
                kind=UnknownValues,
            )
    return tuple([c.add("where", chosen, a, b) for a, b in pairs])


def _is_true(c: Call, condition: Operand | None, what: str) -> bool:
    """Tells whether a loop goes on; raises `UnknownValues` where that is known only when the model runs."""
    if condition is None:
        return True
    if not isinstance(condition, CompileTimeConstant) or condition.symbolic:
        c.fail(
            f"{what} depends on the inputs' values",
            "only loops whose number of iterations is known can be compiled",
            UnknownValues,
        )
    return bool(condition.array.all())


def _bound(c: Call, names: list[str], given: list[Operand]) -> dict[str, Operand]:
    """Returns the operands *given* to a loop's body by its inputs' *names*."""
    if len(names) != len(given):
        c.fail(f"its body takes {len(names)} inputs, and is given {len(given)}", UNFIT)
    return dict(zip(names, given, strict=True))


@translates("Loop", limits=f"loops whose number of iterations is not constant, or above {MOST_SEQUENCE_STEPS}")
def loop(c: Call) -> Results:
    """A loop, written out."""
    body: GraphProto = c.attributes["body"]
    names = [i.name for i in body.input]
    limit = int(c.numbers(0, "the number of iterations")) if c.has(0) else None
    states: list[Operand] = [c.input(i) for i in range(2, len(c.inputs))]
    go_on = _is_true(c, c.optional(1), "its condition")
    rows: list[list[Operand]] = []
    step = 0
    while go_on and (limit is None or step < limit):
        if step >= MOST_SEQUENCE_STEPS:
            c.fail(f"it runs for more than {MOST_SEQUENCE_STEPS} iterations")
        given = [CompileTimeConstant(np.asarray(step, np.int64)), c.scalar(True, bool_), *states]
        condition, *made = c.subgraph(body, _bound(c, names, given))
        states = made[: len(states)]
        rows.append(made[len(states) :])
        step += 1
        go_on = (limit is not None and step >= limit) or _is_true(c, condition, "when it ends")
    scans = len(body.output) - 1 - len(states)
    if scans and not rows:
        c.fail("it has no iterations, so its outputs are empty")
    return *states, *[stack(c, [row[k] for row in rows], 0) for k in range(scans)]


@translates("Scan", limits=f"sequences of symbolic length, or longer than {MOST_SEQUENCE_STEPS}; operator set 8")
def scan(c: Call) -> Results:
    """A loop over the elements of sequences, written out."""
    if c.opset < 9:
        c.fail("Scan of operator set 8 is not supported", "export the model again with opset_version=9 or newer")
    body: GraphProto = c.attributes["body"]
    names = [i.name for i in body.input]
    count = c.integer("num_scan_inputs", 1)
    given = [c.input(i) for i in range(len(c.inputs))]
    if not 1 <= count <= len(given):
        c.fail(f"it has {len(given)} inputs, and says that {count} are sequences", UNFIT)
    states, sequences = given[:-count], given[-count:]
    axes = [c.axis_of(a, x.rank) for a, x in zip(c.ints_for("scan_input_axes", count, 0), sequences, strict=True)]
    turned = c.ints_for("scan_input_directions", count, 0)
    steps = steps_of(c, sequences[0].shape[axes[0]], '{"x": (16, 1, 128)}')
    rows: list[list[Operand]] = []
    for t in range(steps):
        where = [steps - 1 - t if back else t for back in turned]
        elements = [element(c, x, a, k) for x, a, k in zip(sequences, axes, where, strict=True)]
        made = c.subgraph(body, _bound(c, names, [*states, *elements]))
        states = made[: len(states)]
        rows.append(made[len(states) :])
    return *states, *_scanned(c, rows)


def _scanned(c: Call, rows: list[list[Operand]]) -> list[Operand]:
    """Returns the outputs of all steps, stacked along their axes in their directions."""
    count = len(rows[0])
    axes, turned = c.ints_for("scan_output_axes", count, 0), c.ints_for("scan_output_directions", count, 0)
    columns: list[list[Any]] = [[row[k] for row in rows] for k in range(count)]
    ordered = [column[::-1] if back else column for column, back in zip(columns, turned, strict=True)]
    return [stack(c, column, c.axis_of(a, column[0].rank + 1)) for column, a in zip(ordered, axes, strict=True)]
