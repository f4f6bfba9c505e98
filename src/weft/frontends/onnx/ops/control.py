"""Control flow: short loops whose number of iterations is known are written out, other loops and branches are regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, ValueInfoProto

from weft.cost import MOST_SEQUENCE_STEPS, MOST_SIZES_OF_ELEMENTS, MOST_UNROLLED_STEPS
from weft.frontends.onnx.call import Call, Held, HeldResults, Operand, Results
from weft.frontends.onnx.held import NoTensor, TensorSequence, tensors_of
from weft.frontends.onnx.held_forms import FixedForm, Form, LateForm, as_form, form_of, held_of, joined
from weft.frontends.onnx.registry import translates
from weft.graph import UNFIT
from weft.graph.builder import Builder, CompileTimeConstant, static_sizes
from weft.graph.composites import branches_and_loops
from weft.graph.composites.branches_and_loops import Region, branch_of, differ_in_rank, require_taken
from weft.graph.composites.run_time import late_shapes
from weft.graph.composites.sequences import element, stack
from weft.support.dtypes import bool_
from weft.support.errors import ModelError, UnknownValues, UnsupportedOperators


@translates(
    "If",
    limits="where the condition is not constant, branches whose outputs differ in type; and a call that takes the other of two "
    "branches whose outputs differ in their number of dimensions, or of which one can't be compiled",
    holds=True,
)
def if_(c: Call) -> HeldResults:
    """One branch where the condition is known; else the one that is taken when the model runs."""
    then, other = c.attributes["then_branch"], c.attributes["else_branch"]
    condition = c.input(0)
    if isinstance(condition, CompileTimeConstant) and not condition.symbolic:
        return tuple(c.subgraph(then if condition.array.all() else other, {}))
    regions, made = (Region(c, "then"), Region(c, "other")), list[list[Held]]()
    for region, body, rest in zip(regions, (then, other), (other, then), strict=True):
        first = c.choices.made
        try:
            made.append(c.subgraph(body, {}, region.builder.evaluator))
        except UnsupportedOperators:
            raise
        except ModelError as error:
            c.choices.try_others(first)
            return _only(c, condition, rest, rest is then, error)
    if len(made[0]) != len(made[1]):
        c.fail(f"its branches have {len(made[0])} and {len(made[1])} outputs", UNFIT)
    forms = [_form_of_both(c, a, b) for a, b in zip(*made, strict=True)]
    left, right = (_in_forms(r.builder, each, forms) for r, each in zip(regions, made, strict=True))
    fewer = any(map(differ_in_rank, left, right)) and c.choices.fewer()
    return held_of(forms, branch_of(c, condition, (regions[0], left), (regions[1], right), fewer=fewer))


def _only(c: Call, condition: Operand, body: GraphProto, when: bool, refused: ModelError) -> HeldResults:
    """Returns the results of the one branch that can be compiled, which calls have to take: where *condition* is *when*.

    A branch may be for inputs of other shapes than the model is compiled for, and would fail when it is run.
    """
    try:
        made = c.subgraph(body, {})
    except ModelError:
        raise refused from None
    told = f"{refused.where}: {refused.message}" if refused.where else refused.message
    require_taken(c, condition, when, f"its other branch, which is taken, could not be compiled: {told}")
    return tuple(made)


def _form_of_both(c: Call, a: Held, b: Held) -> Form:
    """Returns the form of the results of two branches; raises `ModelError` where there is none."""
    form = joined(form_of(a), form_of(b))
    if form is None:
        c.fail(f"its branches give {a!r} and {b!r}", kind=UnknownValues)
    return form


def _tensors(c: Call, held: Sequence[Held | None], what: str) -> list[Operand]:
    """Returns values that are tensors, all of them; raises `ModelError` for others."""
    for v in held:
        if v is None or isinstance(v, NoTensor):
            c.fail(f"{what} is {v!r}, and should be a tensor", UNFIT)
    return [v for v in held if v is not None and not isinstance(v, NoTensor)]


def _is_true(c: Call, condition: Held | None, what: str) -> bool:
    """Tells whether a loop goes on; raises `UnknownValues` where that is known only when the model runs."""
    if condition is None:
        return True
    if not isinstance(condition, CompileTimeConstant) or condition.symbolic:
        c.fail(f"{what} depends on the inputs' values", kind=UnknownValues)
    return bool(condition.array.all())


def _bound(c: Call, names: list[str], given: Sequence[Held]) -> dict[str, Held]:
    """Returns the operands *given* to a loop's body by its inputs' *names*."""
    if len(names) != len(given):
        c.fail(f"its body takes {len(names)} inputs, and is given {len(given)}", UNFIT)
    return dict(zip(names, given, strict=True))


@translates(
    "Loop",
    limits="states whose type changes, or whose rank does after the first iteration, that are no sequences; and rows of several "
    "shapes",
    holds=True,
)
def loop(c: Call) -> HeldResults:
    """A loop: written out if it is short."""
    known = c.optional(0)
    is_number = isinstance(known, CompileTimeConstant) and not known.symbolic
    limit = int(c.number_at(0, "the number of iterations")) if is_number else None
    given = [c.input(i) if v is None else v for i, v in enumerate(c.held[2:], 2)]
    longest = MOST_SEQUENCE_STEPS if any(isinstance(s, TensorSequence) for s in given) else MOST_UNROLLED_STEPS
    if limit is not None and limit <= longest:
        try:
            return _written_out(c, limit, given)
        except UnknownValues:  # it may end earlier; the written-out iterations are dropped
            pass
    return _loop_of_regions(c, given)


class _OtherFormsError(Exception):
    """An iteration makes states of other forms than those that it is given."""


def _loop_of_regions(c: Call, given: Sequence[Held]) -> HeldResults:
    """Returns the results of a loop whose body is a region; its states have the forms of what iterations make of them."""
    body: GraphProto = c.attributes["body"]
    names = [i.name for i in body.input]
    _check_outputs(c, body, 1 + len(given))
    forms = first = [form_of(held) for held in given]
    ranks, refused = iter(range(MOST_SIZES_OF_ELEMENTS)), None

    def step(r: Builder, number: Operand, now: Sequence[Operand]) -> tuple[Operand, list[Operand], list[Operand]]:
        nonlocal forms
        bound = _bound(c, names, [number, c.scalar(True, bool_), *held_of(forms, now)])
        go_on, *made = c.subgraph(body, bound, r.evaluator, number)
        states = made[: len(given)]
        wider = [_form_of_state(c, f, held) for f, held in zip(forms, states, strict=True)]
        if wider != forms:
            forms = wider
            raise _OtherFormsError
        rows = _tensors(c, made[len(given) :], "a row")
        rows = [_of_declared(r, v, o) for v, o in zip(rows, body.output[1 + len(given) :], strict=True)]
        return _tensors(c, [go_on], "whether it goes on")[0], _in_forms(r, states, forms), rows

    while True:
        try:
            last, rows = branches_and_loops.loop(c, c.optional(0), c.optional(1), _in_forms(c, given, forms), step)
        except _OtherFormsError:
            continue
        except ModelError as error:
            refused = refused or error
            forms = _with_rank_of_empty(first, next(ranks, None))
            if forms == first:
                raise refused from None
            continue
        return *held_of(forms, last), *rows


def _with_rank_of_empty(forms: Sequence[Form], rank: int | None) -> list[Form]:
    """Returns the forms of states, where empty sequences are those of any number of tensors of *rank*, if there is one.

    A body may read from a sequence that is empty at first, in iterations that have something in it.
    """
    if rank is None:
        return list(forms)
    return [LateForm(f.dtype, rank, rank) if isinstance(f, FixedForm) and not f.ranks else f for f in forms]


def _form_of_state(c: Call, form: Form, held: Held) -> Form:
    """Returns the form of a state of *form* that an iteration makes *held*."""
    found = joined(form, form_of(held))
    if found is None:
        c.fail(f"a state that is {form} at first is then {held!r}", kind=UnknownValues)
    return found


def _in_forms(b: Builder, held: Sequence[Held], forms: Sequence[Form]) -> list[Operand]:
    """Returns the tensors of values in the given forms."""
    return [t for v, form in zip(held, forms, strict=True) for t in tensors_of(as_form(b, v, form))]


def _of_declared(b: Builder, x: Operand, info: ValueInfoProto) -> Operand:
    """Returns *x* with the sizes that the model declares, for those that only a run tells, which is checked then."""
    dims = info.type.tensor_type.shape.dim
    if len(dims) != x.rank:
        return x
    known = [d.dim_value if d.HasField("dim_value") else None for d in dims]
    return late_shapes.with_sizes(b, x, known)


def _check_outputs(c: Call, body: GraphProto, least: int) -> None:
    """Raises `ModelError` for a body that does not make all states."""
    if len(body.output) < least:
        c.fail(f"its body has {len(body.output)} outputs, and {least} are needed", UNFIT)


def _written_out(c: Call, limit: int, states: Sequence[Held]) -> HeldResults:
    """Returns the results of a loop of at most *limit* iterations, each of them for itself."""
    body: GraphProto = c.attributes["body"]
    names = [i.name for i in body.input]
    go_on = _is_true(c, c.optional(1), "its condition")
    rows: list[list[Operand]] = []
    step = 0
    while go_on and step < limit:
        given: list[Held] = [CompileTimeConstant(np.asarray(step, np.int64)), c.scalar(True, bool_), *states]
        condition, *made = c.subgraph(body, _bound(c, names, given))
        states = made[: len(states)]
        rows.append(_tensors(c, made[len(states) :], "a row"))
        step += 1
        go_on = step >= limit or _is_true(c, condition, "when it ends")
    scans = len(body.output) - 1 - len(states)
    if scans and not rows:
        c.fail("it has no iterations, so that its outputs are empty", kind=UnknownValues)
    return *states, *[stack(c, [row[k] for row in rows], 0) for k in range(scans)]


@translates("Scan", limits="operator set 8")
def scan(c: Call) -> Results:
    """A loop over the elements of sequences: written out if they are short."""
    if c.opset < 9:
        c.fail("Scan of operator set 8 is not supported", "export the model again with opset_version=9 or newer")
    count = c.integer("num_scan_inputs", 1)
    given = [c.input(i) for i in range(len(c.inputs))]
    if not 1 <= count <= len(given):
        c.fail(f"it has {len(given)} inputs, and says that {count} are sequences", UNFIT)
    states, sequences = given[:-count], given[-count:]
    axes = [c.axis_of(a, x.rank) for a, x in zip(c.ints_for("scan_input_axes", count, 0), sequences, strict=True)]
    turned = [bool(t) for t in c.ints_for("scan_input_directions", count, 0)]
    steps = static_sizes([sequences[0].shape[axes[0]]])
    if steps is not None and 0 < steps[0] <= MOST_UNROLLED_STEPS:
        last, columns = _scan_written_out(c, steps[0], states, sequences, axes, turned)
    else:
        last, columns = _scan_loop(c, states, sequences, axes, turned)
    return *last, *columns


def _scan_written_out(
    c: Call,
    steps: int,
    states: list[Operand],
    sequences: Sequence[Operand],
    axes: Sequence[int],
    turned: Sequence[bool],
) -> tuple[list[Operand], list[Operand]]:
    """Returns the last states and the stacked rows of a scan, each step for itself."""
    body: GraphProto = c.attributes["body"]
    names = [i.name for i in body.input]
    rows: list[list[Operand]] = []
    for t in range(steps):
        where = [steps - 1 - t if back else t for back in turned]
        elements = [element(c, x, a, k) for x, a, k in zip(sequences, axes, where, strict=True)]
        made = _tensors(c, c.subgraph(body, _bound(c, names, [*states, *elements])), "a result of its body")
        states = made[: len(states)]
        rows.append(made[len(states) :])
    count = len(rows[0])
    out_axes, backwards = c.ints_for("scan_output_axes", count, 0), c.ints_for("scan_output_directions", count, 0)
    columns: list[list[Any]] = [[row[k] for row in rows] for k in range(count)]
    ordered = [column[::-1] if back else column for column, back in zip(columns, backwards, strict=True)]
    return states, [stack(c, col, c.axis_of(a, col[0].rank + 1)) for col, a in zip(ordered, out_axes, strict=True)]


def _scan_loop(
    c: Call, states: list[Operand], sequences: Sequence[Operand], axes: Sequence[int], turned: Sequence[bool]
) -> tuple[list[Operand], list[Operand]]:
    """Returns the last states and the rows of a scan, as a loop over the steps."""
    body: GraphProto = c.attributes["body"]
    names = [i.name for i in body.input]
    length = sequences[0].shape[axes[0]]
    _check_outputs(c, body, len(states))

    def step(r: Builder, number: Operand, now: Sequence[Operand]) -> tuple[Operand, list[Operand], list[Operand]]:
        last = r.add("sub", r.size(length), r.size(1))
        places = [r.add("sub", last, number) if back else number for back in turned]
        elements = [r.add("element_at", x, p, axis=a) for x, p, a in zip(sequences, places, axes, strict=True)]
        made = _tensors(
            c, c.subgraph(body, _bound(c, names, [*now, *elements]), r.evaluator, number), "a result of its body"
        )
        return r.scalar(True, bool_), made[: len(states)], made[len(states) :]

    last, rows = branches_and_loops.loop(c, c.size(length), None, states, step)
    out_axes, backwards = (
        c.ints_for("scan_output_axes", len(rows), 0),
        c.ints_for("scan_output_directions", len(rows), 0),
    )
    columns = []
    for x, a, back in zip(rows, out_axes, backwards, strict=True):
        y = c.add("slice", x, starts=(-1,), ends=(-(2**62),), axes=(0,), steps=(-1,)) if back else x
        d = c.axis_of(a, x.rank)
        columns.append(c.transpose(y, [*range(1, d + 1), 0, *range(d + 1, x.rank)]))
    return last, columns
