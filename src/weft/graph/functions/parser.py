"""Reads functions from text in Python's syntax; `printer` writes it.

    def repeat(f, k, x):
        return x if k == 0 else repeat(f, k - 1, f(x))

    def main(x: f32[n, 8]):
        double = lambda v: v + v
        y = repeat(double, 3, x)
        return y, tanh(y)

Nothing of it is run by Python. Infix operators are calls of `add`, `sub`, `mul` and so on.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Final

from weft.graph.functions.nodes import (
    ENTRY,
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
    TensorNote,
    Value,
)
from weft.ir import TextError, python_syntax
from weft.support.dtypes import parse_dtype

_INFIX: Final[dict[type[ast.AST], str]] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.Mod: "floor_mod",
    ast.Pow: "power",
    ast.MatMult: "matmul",
    ast.Eq: "equal",
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.And: "logical_and",
    ast.Or: "logical_or",
    ast.Not: "logical_not",
    ast.USub: "neg",
}
_TURNED: Final[dict[type[ast.AST], str]] = {ast.Gt: "less", ast.GtE: "less_equal"}
"""Comparisons that are others with their operands exchanged."""

STATEMENTS: Final = "a function has assignments to names, functions of its own, and a return at its end"


def parse_functions(text: str) -> Functions:
    """Returns the functions of *text*; raises `ParseError` with line and column where it is not of this form."""
    try:
        return _Parser(text).functions()
    except RecursionError:
        raise TextError("an expression is nested too deeply", "", 1, 1, "give parts of it names") from None


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = text.splitlines()

    def error(self, at: ast.AST, message: str, hint: str | None = None) -> TextError:
        line, column = getattr(at, "lineno", 1), getattr(at, "col_offset", 0)
        source = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        return TextError(message, source, line, column + 1, hint)

    def functions(self) -> Functions:
        found: dict[str, Function] = {}
        for s in python_syntax(self.text, "exec").body:
            if not isinstance(s, ast.FunctionDef):
                raise self.error(s, "this is no function", "the text is a list of functions: def name(...): ...")
            if s.name in found:
                raise self.error(s, f"there are two functions {s.name}")
            found[s.name] = self.function(s)
        if ENTRY not in found:
            raise TextError(f"there is no function {ENTRY}", "", 1, 1, "its parameters are the inputs of the model")
        return Functions(tuple(found.values()))

    def function(self, s: ast.FunctionDef) -> Function:
        if s.decorator_list or s.returns is not None:
            raise self.error(s, f"{s.name} has decorators, or the type of its result", "leave them out")
        return Function(s.name, self.parameters(s.args), self.block(s.body), s.lineno)

    def parameters(self, given: ast.arguments) -> tuple[Parameter, ...]:
        odd = [*given.posonlyargs, *given.kwonlyargs, *given.defaults, given.vararg, given.kwarg]
        if refused := [a for a in odd if a is not None]:
            raise self.error(refused[0], "parameters are names, with types if they have one")
        made = tuple([Parameter(a.arg, self.note(a.annotation)) for a in given.args])
        if len({p.name for p in made}) < len(made):
            raise self.error(given.args[0], "two parameters have one name")
        return made

    def note(self, at: ast.expr | None) -> TensorNote | None:
        """Reads the type of a parameter, `f32[n, 8]`."""
        if at is None:
            return None
        if not (isinstance(at, ast.Subscript) and isinstance(at.value, ast.Name)):
            raise self.error(at, "this is no type of a tensor", "write f32[n, 8], or f32[()] for one number")
        try:
            dtype = parse_dtype(at.value.id)
        except KeyError:
            raise self.error(at, f"there is no data type {at.value.id}", "write f32, i64, bool ...") from None
        sizes = at.slice.elts if isinstance(at.slice, ast.Tuple) else [at.slice]
        return TensorNote(dtype, tuple([self.size(s) for s in sizes]))

    def size(self, at: ast.expr) -> int | str:
        if isinstance(at, ast.Name):
            return at.id
        if isinstance(at, ast.Constant) and type(at.value) is int and at.value >= 0:
            return at.value
        raise self.error(at, "a size is a number of at least 0, or the name of a symbolic size")

    def block(self, statements: Sequence[ast.stmt]) -> Block:
        bindings: list[Bind | Local] = []
        for s in statements[:-1]:
            if isinstance(s, ast.FunctionDef):
                bindings.append(Local(self.function(s), s.lineno))
            elif isinstance(s, ast.Assign) and len(s.targets) == 1:
                bindings.append(Bind(self.targets(s.targets[0]), self.expression(s.value), s.lineno))
            else:
                raise self.error(s, "this is no statement of a function", STATEMENTS)
        last = statements[-1]
        if not isinstance(last, ast.Return) or last.value is None:
            raise self.error(last, "a function ends with the return of a value", STATEMENTS)
        return Block(tuple(bindings), self.expression(last.value))

    def targets(self, at: ast.expr) -> tuple[str, ...]:
        items = at.elts if isinstance(at, ast.Tuple) and len(at.elts) > 1 else [at]
        names = [i.id for i in items if isinstance(i, ast.Name)]
        if len(names) < len(items):
            raise self.error(at, "only a name, or several of the items of a tuple, are assigned to")
        return tuple(names)

    def expression(self, at: ast.expr) -> Expression:
        match at:
            case ast.Name():
                return Name(at.id, at.lineno)
            case ast.Constant(value=bool() | int() | float() | str() | None as value):
                return Value(value, type(value).__name__, at.lineno)
            case ast.Tuple():
                return Group(tuple([self.expression(e) for e in at.elts]), at.lineno)
            case ast.Lambda():
                body = Block((), self.expression(at.body))
                return Lambda(Function("", self.parameters(at.args), body, at.lineno), at.lineno)
            case ast.IfExp():
                return Choose(self.expression(at.test), self.expression(at.body), self.expression(at.orelse), at.lineno)
            case ast.Call():
                return self.call(at)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return Value(-value, type(value).__name__, at.lineno)
        return self.infix(at)

    def call(self, at: ast.Call) -> Apply:
        for k in at.keywords:
            if k.arg is None:
                raise self.error(k.value, "arguments are written one by one")
        keywords = tuple([(str(k.arg), self.expression(k.value)) for k in at.keywords])
        arguments = tuple([self.expression(a) for a in at.args])
        return Apply(self.expression(at.func), arguments, keywords, at.lineno)

    def infix(self, at: ast.expr) -> Apply:
        match at:
            case ast.BinOp(op=op):
                operands, name = [at.left, at.right], _INFIX.get(type(op))
            case ast.UnaryOp(op=op):
                operands, name = [at.operand], _INFIX.get(type(op))
            case ast.BoolOp(op=op, values=[left, right]):
                operands, name = [left, right], _INFIX.get(type(op))
            case ast.Compare(ops=[op], comparators=[right]):
                turned = type(op) in _TURNED
                operands = [right, at.left] if turned else [at.left, right]
                name = (_TURNED if turned else _INFIX).get(type(op))
            case _:
                name = None
        if name is None:
            raise self.error(at, "this is no expression of functions", "write it as a call of an operator")
        return Apply(Name(name, at.lineno), tuple([self.expression(o) for o in operands]), (), at.lineno)
