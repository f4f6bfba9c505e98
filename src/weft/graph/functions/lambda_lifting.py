"""Lambda lifting: functions inside of functions become functions of the model, with their free variables as first arguments.

    def main(x: f32[8], s: f32[8]):             def main_scaled(s, v):
        scaled = lambda v: v * s                    return mul(v, s)
        return twice(scaled, x)                 def main(x: f32[8], s: f32[8]):
                                                    scaled = partial(main_scaled, s)
                                                    return twice(scaled, x)

T. Johnsson, "Lambda lifting: transforming programs to recursive equations" (FPCA 1985).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from weft.graph.functions.nodes import (
    Apply,
    Bind,
    Block,
    Choose,
    Expression,
    Function,
    Functions,
    Group,
    Lambda,
    Local,
    Name,
    Parameter,
    Value,
)
from weft.support.unique_names import UniqueNames

PARTIAL = "partial"
"""`partial(f, a, b)` is the function that calls *f* with *a*, *b*, and its own arguments."""


def lift_lambdas(functions: Functions) -> Functions:
    """Returns the same model without functions inside of functions."""
    lifting = _Lifting(UniqueNames([f.name for f in functions], first=2, separator=""))
    for f in functions:
        lifting.made.append(replace(f, body=lifting.block(f.body, _Around(f.name, [p.name for p in f.parameters]))))
    return Functions(tuple(lifting.made))


class _Around:
    """The variables of the function around, in order, and the name that functions in it begin with."""

    def __init__(self, path: str, variables: Iterable[str]) -> None:
        self.path = path
        self.variables = dict.fromkeys(variables)

    def copy(self) -> _Around:
        return _Around(self.path, self.variables)


class _Lifting:
    def __init__(self, names: UniqueNames) -> None:
        self.names = names
        self.made: list[Function] = []

    def block(self, body: Block, around: _Around) -> Block:
        around, bindings = around.copy(), list[Bind | Local]()
        for s in body.bindings:
            if isinstance(s, Local):
                name = s.function.name
                bindings.append(Bind((name,), self.lifted(s.function, around, name), s.line))
                around.variables[name] = None
            else:
                bindings.append(Bind(s.names, self.expression(s.value, around, s.names[0]), s.line))
                around.variables |= dict.fromkeys(s.names)
        return Block(tuple(bindings), self.expression(body.result, around))

    def expression(self, e: Expression, around: _Around, name: str = "function") -> Expression:
        if isinstance(e, Lambda):
            return self.lifted(e.function, around, name)
        return _with_parts(e, {p: self.expression(p, around) for p in _parts(e)})

    def lifted(self, f: Function, around: _Around, name: str) -> Expression:
        """Makes *f* a function of the model; returns an expression for it: its name, applied to its free variables."""
        used = _free(f)
        given = [v for v in around.variables if v in used]
        made = self.names.of(f"{around.path}_{name}")
        closure: Expression = Name(made, f.line)
        if given:
            closure = Apply(Name(PARTIAL, f.line), (closure, *[Name(v, f.line) for v in given]), (), f.line)
        own = [p.name for p in f.parameters]
        body = f.body
        if f.name and f.name in _free_of_block(body, set(own)):  # it calls itself by the name that it has there
            body = Block((Bind((f.name,), closure, f.line), *body.bindings), body.result)
        inner = _Around(made, [*given, *own])
        self.made.append(Function(made, (*map(Parameter, given), *f.parameters), self.block(body, inner), f.line))
        return closure


def _parts(e: Expression) -> tuple[Expression, ...]:
    """Returns the expressions that *e* is made of."""
    match e:
        case Group():
            return e.items
        case Apply():
            return (e.callee, *e.arguments, *[v for _, v in e.keywords])
        case Choose():
            return e.condition, e.then, e.other
    return ()


def _with_parts(e: Expression, new: Mapping[Expression, Expression]) -> Expression:
    match e:
        case Group():
            return Group(tuple([new[i] for i in e.items]), e.line)
        case Apply():
            keywords = tuple([(k, new[v]) for k, v in e.keywords])
            return Apply(new[e.callee], tuple([new[a] for a in e.arguments]), keywords, e.line)
        case Choose():
            return Choose(new[e.condition], new[e.then], new[e.other], e.line)
    return e


def _free(f: Function) -> set[str]:
    """Returns the names that a function uses and does not bind."""
    return _free_of_block(f.body, {p.name for p in f.parameters} | ({f.name} if f.name else set()))


def _free_of_block(body: Block, bound: set[str]) -> set[str]:
    bound, found = set(bound), set[str]()
    for s in body.bindings:
        if isinstance(s, Local):
            bound.add(s.function.name)
            found |= _free(s.function) - bound
        else:
            found |= _names(s.value) - bound
            bound.update(s.names)
    return found | (_names(body.result) - bound)


def _names(e: Expression) -> set[str]:
    """Returns the names that an expression uses and does not bind."""
    match e:
        case Name():
            return {e.name}
        case Value():
            return set()
        case Lambda():
            return _free(e.function)
    return set().union(*map(_names, _parts(e)))
