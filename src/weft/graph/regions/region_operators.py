"""The operators of control flow. Their attributes are regions: graphs of values that are given to them, and of no others.

    y = if(c, x, then=T, other=E, shapes=((n,),))          T and E take x; one of them runs
    s, r, trips = loop(most, go_on, s0, x, body=B, states=1, scans=1, shapes=((3,), (m, 3)), counted=True)
                                                           B takes (step, s, x), and makes (go on, s, a row of r)
    s, n, trips = loop(most, go_on, s0, n0, x, body=B, states=2, scans=0, appends=((0, 0, 1),), ...)
                                                           B makes (go on, rows, n'): s, of n rows, has these at its end

Inputs behind those that are named here are *captures*: values of the graph around, which every region takes at its end. Constants
are no captures: regions use them as they are. A result whose shape has a late size that is read from another result of the same
node is in memory that is kept, whose size is known only when the node has run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from weft.graph.core.graph import Graph, Node
from weft.ir import ONE, Expr, Var
from weft.ops import Operator, TensorType, same_size
from weft.support.dtypes import bool_, i64
from weft.support.errors import TypeMismatch

Types = Sequence[TensorType | None]


def _no_formula(*tensors: object, **attributes: object) -> object:
    raise TypeMismatch("control flow has no formula")


@dataclass(frozen=True, eq=False)
class RegionOperator(Operator):
    """An operator whose result types are those of its regions, by *rule*; it has no formula."""

    rule: Callable[[Types, Mapping[str, Any]], tuple[TensorType, ...]] | None = None
    has_regions: ClassVar[bool] = True

    def infer(self, inputs: Types, attributes: Mapping[str, Any]) -> tuple[TensorType, ...]:
        """Returns the types of the results; raises `TypeMismatch` where the regions do not take *inputs*."""
        assert self.rule is not None
        return self.rule(inputs, attributes)


def regions_of(node: Node) -> tuple[Graph, ...]:
    """Returns the regions of a node, in the order of the attributes that they are."""
    return tuple([a for _, a in node.attributes if isinstance(a, Graph)]) if node.operator.has_regions else ()


@dataclass(frozen=True)
class Append:
    """A *state* of a loop that an iteration makes rows for, at its end along *axis*: its body's result are these alone.

    The state of number *size*, a vector of one number, has the state's size along the axis.
    """

    state: int
    axis: int
    size: int


def appends_of(loop: Node) -> dict[int, Append]:
    """Returns the states that a loop appends to, by their numbers."""
    known: Mapping[str, Any] = dict(loop.attributes)
    return {a[0]: Append(*a) for a in known.get("appends", ())}


def captures_begin(node: Node) -> int:
    """Returns the number of inputs of a control-flow node before its captures."""
    return 1 if node.operator is IF else 2 + int(node.attribute("states"))


def _check_inputs(region: Graph, given: Types) -> None:
    wanted = [v.type for v in region.inputs]
    if len(wanted) != len(given) or any(t is None or not _fits(t, w) for t, w in zip(given, wanted, strict=True)):
        raise TypeMismatch(f"the region {region.name} does not take the inputs of its node")


def _fits(given: TensorType, wanted: TensorType) -> bool:
    """Tells whether a tensor may be given for one of another type: where that has a size that only a run tells, any is right."""
    if given.dtype is not wanted.dtype or len(given.shape) != len(wanted.shape):
        return False
    return all(same_size(a, b) or isinstance(b, Var) for a, b in zip(given.shape, wanted.shape, strict=True))


def _results(regions: Sequence[Graph], skipped: int, shapes: Sequence[tuple[Expr, ...]]) -> tuple[TensorType, ...]:
    made = []
    for k, shape in enumerate(shapes):
        found = [r.outputs[skipped + k].type for r in regions]
        if not all(_fits(t, TensorType(shape, found[0].dtype)) for t in found):
            raise TypeMismatch(f"result {k} of {regions[0].name} is of another type than the region makes")
        made.append(TensorType(shape, found[0].dtype))
    return tuple(made)


def _if(inputs: Types, attributes: Mapping[str, Any]) -> tuple[TensorType, ...]:
    then, other, condition = attributes["then"], attributes["other"], inputs[0]
    if condition is None or condition.dtype is not bool_ or condition.shape != ():
        raise TypeMismatch("the condition of an if is one bool")
    if len(then.outputs) != len(other.outputs):
        raise TypeMismatch(f"the branches of an if make {len(then.outputs)} and {len(other.outputs)} results")
    for region in (then, other):
        _check_inputs(region, inputs[1:])
    return _results([then, other], 0, attributes["shapes"])


def _loop(inputs: Types, attributes: Mapping[str, Any]) -> tuple[TensorType, ...]:
    body, states, scans, shapes = (attributes[k] for k in ("body", "states", "scans", "shapes"))
    if len(body.outputs) != 1 + states + scans:
        raise TypeMismatch(f"the body of a loop makes {len(body.outputs)} values, and not {1 + states + scans}")
    _check_inputs(body, [TensorType((), i64), *inputs[2:]])
    rows = [tuple(shape[1:]) for shape in shapes[states:]]
    made = _results([body], 1, [*shapes[:states], *rows])
    scanned = [
        TensorType((shape[0], *t.shape), t.dtype) for shape, t in zip(shapes[states:], made[states:], strict=True)
    ]
    return (*made[:states], *scanned, TensorType((ONE,), i64))


IF: Final = RegionOperator("if", _no_formula, rule=_if)
LOOP: Final = RegionOperator("loop", _no_formula, rule=_loop)
REGION_OPERATORS: Final = {op.name: op for op in (IF, LOOP)}

__all__ = ["IF", "LOOP", "REGION_OPERATORS", "Append", "RegionOperator", "appends_of", "captures_begin", "regions_of"]
