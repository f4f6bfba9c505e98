"""Takes appends out of loops: a loop inside of another makes the rows alone, and the outer one can append them in place.

t = loop(n, s, body=(step, s, x) -> concat(s, x, axis=0))                                     becomes
r = loop(n, rows that are none, body=(step, r, x) -> concat(r, x, axis=0)); t = concat(s, r, axis=0)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from weft.graph.core.conditions import LateSize
from weft.graph.core.graph import Attribute, Graph, Node, infer
from weft.graph.core.graph_values import Value
from weft.graph.passes.states.appended_rows import appended_rows, without_rows
from weft.graph.regions.region_operators import LOOP, appends_of
from weft.graph.rewriting.rewriter import Inputs, drop_dead
from weft.ir import ONE
from weft.ops import TensorType
from weft.support.dtypes import i64

Hoist = Callable[[Graph, int, Value], Graph]


@dataclass(frozen=True)
class LoopAppends:
    """State *number* of a loop is its input at first, with rows behind it along *axis* that its *body* alone collects.

    The body has a state more, the last: how many rows there are.
    """

    number: int
    axis: int
    body: Graph

    def hoisted(self, new: Graph, node: Node, inputs: Inputs) -> list[Value]:
        """Adds the loop of the rows to *new*, and the append; returns the results of the old one."""
        k, states, taken = self.number, int(node.attribute("states")), inputs[2 + self.number]
        assert taken is not None
        shapes, shape = list(node.attribute("shapes")), list(node.outputs[k].shape)
        size = new.fresh_dim("rows")
        shape[self.axis] = size
        shapes[k] = tuple(shape)
        shapes.insert(states, (ONE,))
        given = list(inputs)
        given[2 + k] = new.constant(np.zeros(without_rows(taken, self.axis) or (), taken.dtype.numpy), "no_rows")
        given.insert(2 + states, new.constant(np.zeros(1, np.int64), "no_size"))
        changed: dict[str, Attribute] = {"body": self.body, "shapes": tuple(shapes), "states": states + 1}
        attributes = tuple(sorted({**dict(node.attributes), **changed}.items()))
        names = [v.name for v in node.outputs]
        names.insert(states, size.name)
        types = infer(LOOP, tuple(given), attributes)
        made = list(new.append(Node(LOOP, tuple(given), attributes, types, names, node.source)).outputs)
        new.late_sizes.append(LateSize(size, made.pop(states), 0, "a size of a state", node.source))
        made[k] = new.add("concat", [taken, made[k]], axis=self.axis, source=node.source)
        return made


def loop_appends(node: Node, number: int, taken: Value, hoist: Hoist) -> LoopAppends | None:
    """Returns how a loop appends to a value that is made of *taken* by appends; None where it uses that otherwise, too.

    *hoist* takes appends out of branches and loops in its body.
    """
    if number >= int(node.attribute("states")) or appends_of(node):
        return None
    given, body = node.inputs[2 + number], node.attribute("body")
    if given is None or (given is not taken and appended_rows(given, taken) is None):
        return None
    body = hoist(body, 1 + number, body.inputs[1 + number])
    found = appended_rows(body.outputs[1 + number], body.inputs[1 + number])
    if found is None or without_rows(node.outputs[number], found[0]) is None:
        return None
    axis, rows = found
    made = _collecting(body, number, axis, rows, int(node.attribute("states")))
    return None if made is None else LoopAppends(number, axis, made)


def _collecting(body: Graph, number: int, axis: int, rows: Sequence[Value], states: int) -> Graph | None:
    """Returns *body* with its rows alone for state *number*, and a state of their number; None where it reads the state."""
    made, taken = body.empty_copy(), body.inputs[1 + number]
    source = next((v.producer.source for v in rows if v.producer is not None), "")
    size, shape = made.fresh_dim("rows"), list(taken.shape)
    shape[axis] = size
    collected = Value(f"{taken.name}_rows", TensorType(tuple(shape), taken.dtype))
    told = Value(size.name, TensorType((ONE,), i64))
    made.inputs[1 + number] = collected
    made.inputs.insert(1 + states, told)
    made.nodes = list(body.nodes)
    whole = made.add("concat", [collected, *rows], axis=axis, source=source)
    outputs = [*zip(body.output_names, body.outputs, strict=True)]
    outputs[1 + number] = (outputs[1 + number][0], whole)
    outputs.insert(1 + states, (f"{size.name}_next", made.add("sizes", [], sizes=(whole.shape[axis],), shape=(1,))))
    for name, v in outputs:
        made.output(v, name)
    made.guards = list(body.guards)
    made.late_sizes = [*body.late_sizes, LateSize(size, told, 0, "a size of a state", source)]
    drop_dead(made)
    return None if taken in made.users() or taken in made.roots else made
