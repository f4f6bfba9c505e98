"""Control flow, whose bodies are symbols inside of a node; `..._locs` say which of its inputs are their variables."""

from __future__ import annotations

from collections.abc import Sequence

from weft.frontends.mxnet.call import Call
from weft.frontends.mxnet.registry import translates
from weft.graph.builder import Builder, Operand, PartialEvaluator
from weft.graph.composites import branches_and_loops
from weft.support.dtypes import bool_, i64


@translates("_foreach")
def foreach(c: Call) -> tuple[Operand, ...]:
    """A body for each element of sequences along their first dimension, with states from one to the next."""
    columns, states, rest = (c.ints(f"{name}_locs", ()) for name in ("in_data", "in_state", "remain"))
    locations, given = [*columns, *states, *rest], c.all_inputs()
    if sorted(locations) != list(range(len(given))) or not columns:
        c.wrong("in_data_locs", "the places of its inputs")
    first = given[len(columns) : len(columns) + len(states)]
    count = c.integer("num_out_data")

    def step(r: Builder, number: Operand, now: Sequence[Operand]) -> tuple[Operand, list[Operand], list[Operand]]:
        elements = [r.add("gather", x, number, axis=0) for x in given[: len(columns)]]
        values = [*elements, *now, *given[len(columns) + len(states) :]]
        by_place = dict(zip(locations, values, strict=True))
        made = c.subgraph(0, [by_place[k] for k in range(len(given))], r)
        return r.scalar(True, bool_), made[count:], made[:count]

    last, rows = branches_and_loops.loop(c, c.size(given[0].shape[0]), None, first, step)
    return (*rows, *last)


@translates("_while_loop")
def while_loop(c: Call) -> tuple[Operand, ...]:
    """A body as long as a condition holds, at most so many times; rows of iterations that are not run are zero."""
    most, count, given = c.integer("max_iterations"), c.integer("num_out_data"), c.all_inputs()
    asked, taken, variables = (c.ints(name, ()) for name in ("cond_input_locs", "func_input_locs", "func_var_locs"))
    if not all(0 <= k < len(given) for k in [*asked, *taken]) or not all(0 <= k < len(taken) for k in variables):
        c.wrong("func_var_locs", "the places of its inputs")
    places = [taken[k] for k in variables]

    def with_states(now: Sequence[Operand], locations: Sequence[int]) -> list[Operand]:
        by_place = {**dict(enumerate(given)), **dict(zip(places, now, strict=True))}
        return [by_place[k] for k in locations]

    def goes_on(b: Builder, now: Sequence[Operand]) -> Operand:
        return b.cast(b.reshape(c.subgraph(0, with_states(now, asked), b)[0], ()), bool_)

    def step(r: Builder, number: Operand, now: Sequence[Operand]) -> tuple[Operand, list[Operand], list[Operand]]:
        made = c.subgraph(1, with_states(now[count:], taken), r)
        place = r.reshape(number, [1, 1])
        columns = [
            r.add("scatter_nd", whole, place, r.reshape(row, [1, *row.shape]), reduction="none")
            for whole, row in zip(now[:count], made[:count], strict=True)
        ]
        return goes_on(r, made[count:]), [*columns, *made[count:]], []

    first = [given[k] for k in places]
    trial = Builder(PartialEvaluator(c.evaluator.graph.region("trial"), around=c.evaluator), c.source)
    rows = c.subgraph(1, with_states(first, taken), trial)[:count]
    empty = [c.add("full", shape=(most, *row.shape), value=0, dtype=row.dtype) for row in rows]
    last, _ = branches_and_loops.loop(c, c.scalar(most, i64), goes_on(c, first), [*empty, *first], step)
    return tuple(last)


@translates("_cond")
def cond(c: Call) -> tuple[Operand, ...]:
    """One of two bodies, as a third one says."""
    given = c.all_inputs()

    def body(k: int, name: str, b: Builder) -> list[Operand]:
        return c.subgraph(k, [given[i] for i in c.ints(f"{name}_input_locs", ())], b)

    condition = c.cast(c.reshape(body(0, "cond", c)[0], ()), bool_)
    return tuple(branches_and_loops.branch(c, condition, lambda r: body(1, "then", r), lambda r: body(2, "else", r)))
