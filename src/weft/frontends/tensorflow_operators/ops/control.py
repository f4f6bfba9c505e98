"""Control flow: functions are imported where they are called, branches and loops become regions."""

from __future__ import annotations

from collections.abc import Sequence

from weft.cost import MOST_UNROLLED_STEPS
from weft.frontends.tensorflow_operators.call import SAVE_AGAIN, Call, Held, ListOfTensors, Results, Variable
from weft.frontends.tensorflow_operators.registry import translates
from weft.graph import Value
from weft.graph.builder import Builder, CompileTimeConstant, Operand, PartialEvaluator
from weft.graph.composites import branches_and_loops
from weft.support.dtypes import bool_
from weft.support.errors import UnknownValues


@translates("PartitionedCall", "StatefulPartitionedCall")
def function_call(c: Call) -> Results:
    """A function's results."""
    return tuple(c.library.call(c.text("f"), c.inputs))


@translates("RemoteCall")
def remote_call(c: Call) -> Results:
    """A function's results; the first input is the name of a device, on which it would run."""
    return tuple(c.library.call(c.text("f"), c.inputs[1:]))


@translates("If", "StatelessIf")
def if_(c: Call) -> Results:
    """One of two functions, as the first input says."""
    return branch(c, c.tensor(0), c.inputs[1:], _name(c, "then_branch"), _name(c, "else_branch"))


def _name(c: Call, attribute: str) -> object:
    """Returns the name of a function, or the number of a subgraph."""
    return c.value(attribute, (str, int))


def branch(c: Call, condition: Operand, given: Sequence[Held], then: object, other: object) -> Results:
    """Returns the results of a function: of the branch taken if that is known, else of a conditional."""
    if isinstance(condition, CompileTimeConstant) and not condition.symbolic:
        return tuple(c.library.call(then if condition.array.all() else other, given))
    given = _with_known_shapes(c, given, then, other)
    found: list[list[Held]] = []

    def body(name: object, r: Builder) -> list[Operand]:
        found.append(c.library.call(name, given, r.evaluator))
        return [_tensor_of(c, h) for h in found[-1]]

    made = branches_and_loops.branch(c, _truth(c, condition), lambda r: body(then, r), lambda r: body(other, r))
    lists = [isinstance(held, ListOfTensors) for held in found[0]]
    return tuple([ListOfTensors.of(c, x) if is_list else x for x, is_list in zip(made, lists, strict=True)])


def _with_known_shapes(c: Call, given: Sequence[Held], then: object, other: object) -> Sequence[Held]:
    """Returns arguments in which lists have tensors, as one branch puts some into a list that the other passes on."""
    empty = [k for k, h in enumerate(given) if isinstance(h, ListOfTensors) and h.elements is None]
    if not empty:
        return given
    tried = [c.library.call(name, given, _trial(c)) for name in (then, other)]
    passed = [c.library.unchanged(name) for name in (then, other)]
    whole = list(given)
    for results, sources in zip(tried, passed[::-1], strict=True):
        for after, k in zip(results, sources, strict=True):
            was = None if k is None else given[k]
            if (
                k in empty
                and isinstance(was, ListOfTensors)
                and isinstance(after, ListOfTensors)
                and after.elements is not None
            ):
                whole[k] = was.of_zeros(c, after.elements.shape[1:])
    return whole


def _trial(c: Call) -> PartialEvaluator:
    """Returns the evaluator of a region that is dropped."""
    return PartialEvaluator(c.evaluator.graph.region("trial"), around=c.evaluator)


@translates("Case", "StatelessCase")
def case(c: Call) -> Results:
    """The one of several functions whose number the first input is; the last one for any other number."""
    names = c.value("branches", list)
    if not names:
        c.fail("it has no functions", SAVE_AGAIN)
    number = c.reshape(c.tensor(0), ())
    return _chosen(c, c, number, c.inputs[1:], names, 0)


def _chosen(c: Call, b: Builder, number: Operand, given: Sequence[Held], names: Sequence[object], k: int) -> Results:
    """Returns the results of function *k* if *number* says so, else of those behind it."""
    if k == len(names) - 1:
        return tuple(c.library.call(names[k], given, b.evaluator))
    is_it = b.add("equal", number, b.scalar(k, number.dtype))
    if isinstance(is_it, CompileTimeConstant) and not is_it.symbolic:
        if is_it.array.all():
            return tuple(c.library.call(names[k], given, b.evaluator))
        return _chosen(c, b, number, given, names, k + 1)

    def taken(r: Builder) -> list[Operand]:
        return [_tensor_of(c, h) for h in c.library.call(names[k], given, r.evaluator)]

    def others(r: Builder) -> list[Operand]:
        made = _chosen(c, r, number, given, names, k + 1)
        return [_tensor_of(c, h) for h in (made if isinstance(made, tuple) else (made,))]

    return tuple(branches_and_loops.branch(b, is_it, taken, others))


@translates("While", "StatelessWhile")
def while_(c: Call) -> Results:
    """A loop of a function while another holds."""
    return loop(c, c.inputs, _name(c, "cond"), _name(c, "body"))


def loop(c: Call, first: Sequence[Held], condition: object, body: object) -> Results:
    """Returns the last states of a loop; one that is short, and known to be, is written out."""
    fixed = {k for k, source in enumerate(c.library.unchanged(body)) if source == k}
    done = _written_out(c, first, condition, body)
    return _region(c, first, condition, body, fixed) if done is None else done


def _written_out(c: Call, states: Sequence[Held], condition: object, body: object) -> tuple[Held, ...] | None:
    """Returns the states after at most `MOST_UNROLLED_STEPS` iterations; None if these are not known to be enough."""
    now = list(states)
    for _ in range(MOST_UNROLLED_STEPS + 1):
        (go_on,) = c.library.call(condition, now)[:1]
        if not isinstance(go_on, CompileTimeConstant) or go_on.symbolic:
            return None
        if not go_on.array.all():
            return tuple(now)
        now = c.library.call(body, now)
    return None


def _region(c: Call, first: Sequence[Held], condition: object, body: object, fixed: set[int]) -> tuple[Held, ...]:
    """Returns the last states of a loop that is a region; those that stay are not its states."""
    whole = _with_elements(c, first, body, fixed)
    moving = [k for k, held in enumerate(whole) if k not in fixed and not isinstance(held, Variable)]
    initial = [_tensor_of(c, whole[k]) for k in moving]

    def held(b: Builder, states: Sequence[Operand]) -> list[Held]:
        made = list(whole)
        for k, state in zip(moving, states, strict=True):
            made[k] = ListOfTensors.of(b, state) if isinstance(whole[k], ListOfTensors) else state
        return made

    def step(r: Builder, number: Operand, now: Sequence[Operand]) -> tuple[Operand, list[Operand], list[Operand]]:
        made = c.library.call(body, held(r, now), r.evaluator)
        states = [_tensor_of(c, made[k]) for k in moving]
        (go_on,) = c.library.call(condition, held(r, states), r.evaluator)[:1]
        return _truth(r, _tensor_of(c, go_on)), states, []

    (begins,) = c.library.call(condition, whole)[:1]
    last, _ = branches_and_loops.loop(c, None, _truth(c, _tensor_of(c, begins)), initial, step)
    return tuple(held(c, last))


def _with_elements(c: Call, first: Sequence[Held], body: object, fixed: set[int]) -> list[Held]:
    """Returns first states in which lists have tensors: zeros of the shape that an iteration puts into them."""
    whole = list(first)
    empty = [k for k, h in enumerate(whole) if isinstance(h, ListOfTensors) and h.elements is None and k not in fixed]
    if not empty:
        return whole
    region = c.evaluator.graph.region("trial")
    inner = PartialEvaluator(region, around=c.evaluator)
    given: list[Held] = [
        h
        if k in fixed or not isinstance(h, Value | CompileTimeConstant)
        else region.input(f"state{k}", h.shape, h.dtype)
        for k, h in enumerate(whole)
    ]
    made = c.library.call(body, given, inner)
    for k in empty:
        was, after = whole[k], made[k]
        if not isinstance(was, ListOfTensors) or not isinstance(after, ListOfTensors) or after.elements is None:
            c.fail("the shape of the tensors in a list is not known", SAVE_AGAIN, UnknownValues)
        whole[k] = was.of_zeros(c, after.elements.shape[1:])
    return whole


def _tensor_of(c: Call, held: Held) -> Operand:
    """Returns a state as a tensor."""
    if isinstance(held, ListOfTensors) and held.elements is not None:
        return held.elements
    if not isinstance(held, Value | CompileTimeConstant):
        c.fail(f"a {type(held).__name__} may not change from one iteration to the next", "build the model without it")
    return held


def _truth(b: Builder, x: Operand) -> Operand:
    """Returns a condition, one number or bool, as a bool of rank 0."""
    return b.reshape(b.cast(x, bool_), ())
