"""Makes the graph of functions, by partial evaluation: calls are inlined, and all that is known when compiling is computed.

Functions, numbers and tuples are values of the compiler, tensors are values of the graph. A condition that is known takes one
branch; one that only a run decides becomes an `if` region. Tail recursion under such a condition becomes a loop, whose states are
the function's tensors; other recursion has to end by conditions that are known.

N. Jones, C. Gomard, P. Sestoft, "Partial Evaluation and Automatic Program Generation" (1993), chapter 5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from weft.cost import INLINED_CALLS, NESTED_CALLS
from weft.graph.builder import Builder, CompileTimeConstant, Operand, PartialEvaluator
from weft.graph.composites.branches_and_loops import branch, loop
from weft.graph.core.graph import Graph
from weft.graph.core.graph_values import Value as GraphValue
from weft.graph.functions.apply_operators import SIZE, Operators
from weft.graph.functions.items import (
    Builtin,
    Closure,
    FunctionCall,
    Item,
    Variables,
    applied_to,
    same,
)
from weft.graph.functions.lambda_lifting import PARTIAL
from weft.graph.functions.nodes import (
    ENTRY,
    Apply,
    Bind,
    Block,
    Choose,
    Expression,
    Functions,
    Group,
    Lambda,
    Name,
    TensorNote,
    Value,
)
from weft.ir import INDEX, Const, as_expr
from weft.ops import OPERATORS
from weft.support.dtypes import bool_, parse_dtype
from weft.support.errors import ModelError


def inline_functions(functions: Functions, weights: Mapping[str, np.ndarray[Any, Any]] | None = None) -> Graph:
    """Returns the graph of `main`: its parameters are inputs, and *weights* are arrays that functions use by name.

    Raises `ModelError` naming function and line where an operator does not take its operands, a name stands for nothing, or
    recursion is not ended by a condition that is known when compiling.
    """
    graph = Graph(ENTRY)
    inliner = _Inliner(functions, graph, dict(weights or {}))
    entry = functions[ENTRY]
    inputs: list[Item] = []
    for p in entry.parameters:
        if p.type is None:
            raise ModelError(
                f"the parameter {p.name} has no type",
                where=f"function {ENTRY}, line {entry.line}",
                hint=f"write {p.name}: f32[n, 8]",
            )
        inputs.append(graph.input(p.name, _shape(p.type, graph), p.type.dtype))
    made = inliner.call(FunctionCall(Closure(entry, {}), tuple(inputs), entry.line))
    for k, v in enumerate(inliner.tensors(made, "main returns")):
        graph.output(inliner.evaluator.value(v), f"result{k}")
    return graph


def _shape(note: TensorNote, graph: Graph) -> list[Any]:
    return [graph.dim(s) if isinstance(s, str) else s for s in note.shape]


class _NoLoop(Exception):
    """The calls of a recursion are different code: it changes functions, or conditions that were known."""


class _Changed(Exception):
    """A recursion changes arguments that are no states of its loop yet, those at *places*."""

    def __init__(self, places: list[int]) -> None:
        super().__init__()
        self.places = places


class _Inliner(Operators):
    def __init__(self, functions: Functions, graph: Graph, weights: Mapping[str, np.ndarray[Any, Any]]) -> None:
        super().__init__(PartialEvaluator(graph))
        self.top: Variables = {f.name: Closure(f, {}) for f in functions}
        for name, array in weights.items():
            if name in self.top:
                raise ModelError(f"{name} is a function, and an array", hint="give the weight another name")
            self.top[name] = CompileTimeConstant(np.asarray(array), name)
        self.calls = 0

    # -- calls ---------------------------------------------------------------------------------------------------------

    def call(self, called: FunctionCall) -> Item:
        """Returns the result of a function. A call at its end takes its place, so that these nest no deeper."""
        if len(self.nested) >= NESTED_CALLS:
            self.fail(
                f"calls nest {NESTED_CALLS} deep: nothing that is known ends the recursion of {called.callee.function.name}",
                "let the function call itself as the last thing it does, and change only tensors and numbers: a loop",
            )
        self.nested.append("")
        try:
            result: Item | FunctionCall = called
            while isinstance(result, FunctionCall):
                self.nested[-1] = result.callee.function.name or "lambda"
                result = self.result(result)
            return result
        finally:
            self.nested.pop()

    def entered(self, called: FunctionCall) -> Variables:
        """Returns the variables at the beginning of a function."""
        self.calls, self.line = self.calls + 1, called.line
        f, given = called.callee.function, called.given
        if self.calls > INLINED_CALLS:
            self.fail(
                f"more than {INLINED_CALLS} calls are inlined",
                "call a function in a loop: as the last thing that it does",
            )
        if len(given) != len(f.parameters):
            self.fail(f"{f.name or 'a lambda'} takes {len(f.parameters)} arguments, and is given {len(given)}")
        for p, v in zip(f.parameters, given, strict=True):
            if p.type is not None and not self.fits(v, p.type):
                self.fail(f"{p.name} of {f.name} is declared {p.type}, and is given {v!r}")
        return {**called.callee.around, **{p.name: v for p, v in zip(f.parameters, given, strict=True)}}

    def fits(self, v: Item, note: TensorNote) -> bool:
        """Tells whether a value is of a declared type; a symbolic size may be given for one of another name."""
        if (
            not isinstance(v, GraphValue | CompileTimeConstant)
            or v.dtype is not note.dtype
            or v.rank != len(note.shape)
        ):
            return False
        sizes = [as_expr(s, INDEX) for s in v.shape]
        return not any(
            isinstance(n, int) and isinstance(s, Const) and s.value != n for n, s in zip(note.shape, sizes, strict=True)
        )

    def result(self, called: FunctionCall) -> Item | FunctionCall:
        """Returns the result of a function, or the call at its end."""
        variables = self.entered(called)
        body = called.callee.function.body
        self.bind(body, variables)
        return self.tail(body.result, variables, called)

    def bind(self, body: Block, variables: Variables) -> None:
        """Adds the bindings of a body to *variables*."""
        for s in body.bindings:
            self.line = s.line
            if not isinstance(s, Bind):
                around = dict(variables)
                variables[s.function.name] = around[s.function.name] = Closure(s.function, around)
                continue
            value = self.value(s.value, variables)
            if len(s.names) == 1:
                variables[s.names[0]] = value
            elif isinstance(value, tuple) and len(value) == len(s.names):
                variables.update(zip(s.names, value, strict=True))
            else:
                self.fail(f"{', '.join(s.names)} are {len(s.names)} names, and the value is {value!r}")

    def tail(self, e: Expression, variables: Variables, called: FunctionCall) -> Item | FunctionCall:
        """Returns the value of an expression at the end of the function that is *called*, or the call that it is."""
        path: list[tuple[Choose, bool]] = []
        while isinstance(e, Choose):
            self.line = e.line
            condition = self.value(e.condition, variables)
            known = self.known(condition)
            if known is None:
                return self.choice(e, condition, variables, called, path)
            path.append((e, known))
            e = e.then if known else e.other
        following = self.called(e, variables)
        return self.value(e, variables) if following is None else following

    def called(self, e: Expression, variables: Variables) -> FunctionCall | None:
        """Returns the call of a function that *e* is; None for anything else."""
        if not isinstance(e, Apply) or e.keywords:
            return None
        callee, first = applied_to(self.value(e.callee, variables))
        if not isinstance(callee, Closure):
            return None
        return FunctionCall(callee, (*first, *[self.value(a, variables) for a in e.arguments]), e.line)

    # -- conditions known at run time ----------------------------------------------------------------------------------

    def known(self, condition: Item) -> bool | None:
        """Returns a condition as far as it is known."""
        if isinstance(condition, bool | int | float):
            return bool(condition)
        if isinstance(condition, CompileTimeConstant) and not condition.symbolic and condition.array.size == 1:
            return bool(condition.array.reshape(()))
        if not isinstance(condition, GraphValue | CompileTimeConstant):
            self.fail(f"{condition!r} is no condition")
        if condition.dtype is not bool_:
            self.fail(f"the condition is {condition!r}, and should be a bool", "compare it with a number")
        return None

    def choice(
        self,
        e: Choose,
        condition: Item,
        variables: Variables,
        called: FunctionCall,
        path: Sequence[tuple[Choose, bool]],
    ) -> Item:
        """Returns the value of a choice at the end of a function that only a run makes: a loop, or an `if` region.

        *path* has the choices that led to it, which were known.
        """
        for again, go_on in ((e.then, True), (e.other, False)):
            if self.is_call_of(called.callee, again, variables):
                try:
                    return self.as_loop(called, e, condition, path, go_on=go_on)
                except _NoLoop:
                    break
        return self.branched(e, condition, variables)

    def branched(self, e: Choose, condition: Item, variables: Variables) -> Item:
        shape: list[Item] = []

        def body(part: Expression) -> Callable[[Builder], Sequence[Operand]]:
            def build(b: Builder) -> Sequence[Operand]:
                with self.region(b):
                    made = self.value(part, variables)
                    shape.append(made)
                    return self.tensors(made, "a branch is")

            return build

        assert isinstance(condition, GraphValue | CompileTimeConstant)
        made = branch(self.builder, condition, body(e.then), body(e.other))
        return tuple(made) if isinstance(shape[0], tuple) else made[0]

    def is_call_of(self, callee: Closure, e: Expression, variables: Variables) -> bool:
        """Tells whether *e* is a call of the function *callee* by a name."""
        if not isinstance(e, Apply) or not isinstance(e.callee, Name) or e.keywords:
            return False
        found = variables.get(e.callee.name, self.top.get(e.callee.name))
        function, _ = applied_to(found)
        return isinstance(function, Closure) and function.function is callee.function

    def as_loop(
        self, called: FunctionCall, e: Choose, condition: Item, path: Sequence[tuple[Choose, bool]], *, go_on: bool
    ) -> Item:
        """Returns the result of a function that calls itself while a condition is *go_on*: its tensors are states of a loop.

        So are its numbers that change. Raises `_NoLoop` where others change, or where an iteration may leave the *path*.
        """
        again, base = (e.then, e.other) if go_on else (e.other, e.then)
        states = [k for k, v in enumerate(called.given) if isinstance(v, GraphValue | CompileTimeConstant)]

        def iteration(values: Sequence[Operand]) -> Variables:
            now = dict(zip(states, values, strict=True))
            given = tuple([now.get(k, v) for k, v in enumerate(called.given)])
            inside = self.entered(FunctionCall(called.callee, given, again.line))
            self.bind(called.callee.function.body, inside)
            if any(self.known(self.value(outer.condition, inside)) is not known for outer, known in path):
                raise _NoLoop
            return inside

        def step(
            b: Builder, _: Operand, values: Sequence[Operand]
        ) -> tuple[Operand, Sequence[Operand], Sequence[Operand]]:
            with self.region(b):
                following = self.called(again, iteration(values))
                assert following is not None
                pairs = zip(following.given, called.given, strict=True)
                changed = [k for k, (new, old) in enumerate(pairs) if k not in states and not same(new, old)]
                if changed:
                    raise _Changed(changed)
                new = [self.tensor(following.given[k], "a state of the loop") for k in states]
                return self.goes_on(self.value(e.condition, iteration(new)), go_on=go_on), new, []

        while True:
            initial = [self.tensor(called.given[k], "a state of the loop") for k in states]
            try:
                last, _ = loop(self.builder, None, self.goes_on(condition, go_on=go_on), initial, step)
                return self.value(base, iteration(last))
            except _Changed as found:
                if not all(isinstance(called.given[k], bool | int | float) for k in found.places):
                    raise _NoLoop from None
                states = sorted([*states, *found.places])

    def goes_on(self, condition: Item, *, go_on: bool) -> Operand:
        """Returns whether a loop goes on."""
        value = self.tensor(condition, "the condition of a loop")
        return value if go_on else self.builder.add("logical_not", value)

    # -- expressions ----------------------------------------------------------------------------------------------------

    def value(self, e: Expression, variables: Variables) -> Item:
        """Returns the value of an expression."""
        if e.line:
            self.line = e.line
        match e:
            case Name():
                return self.named(e.name, variables)
            case Value():
                return e.value
            case Group():
                return tuple([self.value(i, variables) for i in e.items])
            case Lambda():
                return Closure(e.function, dict(variables))
            case Choose():
                condition = self.value(e.condition, variables)
                known = self.known(condition)
                if known is None:
                    return self.branched(e, condition, variables)
                return self.value(e.then if known else e.other, variables)
        return self.applied(e, variables)

    def named(self, name: str, variables: Variables) -> Item:
        if name in variables:
            return variables[name]
        if name in self.top:
            return self.top[name]
        if name in OPERATORS or name in (PARTIAL, SIZE):
            return Builtin(name)
        try:
            return parse_dtype(name)
        except KeyError:
            self.fail(
                f"{name} is no variable, function, weight, operator or data type",
                "give arrays that functions use by name as weights",
            )

    def applied(self, e: Apply, variables: Variables) -> Item:
        called = self.called(e, variables)
        if called is not None:
            result = self.call(called)
            self.line = e.line
            return result
        callee, first = applied_to(self.value(e.callee, variables))
        given = [*first, *[self.value(a, variables) for a in e.arguments]]
        if not isinstance(callee, Builtin):
            self.fail(f"{callee!r} is called, and is no function")
        keywords = {k: self.value(v, variables) for k, v in e.keywords}
        self.line = e.line
        return self.built_in(callee.name, given, keywords)
