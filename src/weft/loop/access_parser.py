"""The part of the loop language's parser below statements: accesses, regions, types and parameters."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from weft.ir import INDEX, ONE, Expr, ExprParser, Plan, Var
from weft.loop.buffer import Buffer
from weft.loop.nodes import Address, Load, Param, Range, Region
from weft.loop.printer import extent_of


class AccessParser(ExprParser):
    """Reads expressions that access buffers, and the declarations of buffers. `scope` maps the visible names."""

    scope: dict[str, Any]

    def __init__(self, text: str, scope: Mapping[str, Any]) -> None:
        super().__init__(text, scope)
        self.scope = dict(scope)

    def plan(self, at: ast.expr) -> Plan:
        """Adds `A[i, j]` and `A.at(i, j)` to the expressions."""
        match at:
            case ast.Subscript(target, where):
                source = self.buffer(target)
                return elements(where), lambda *i: Load(source, i)
            case ast.Call(ast.Attribute(target, "at"), args, []):
                taken = self.buffer(target)
                return args, lambda *i: Address(taken, i)
        return super().plan(at)

    def exprs(self, ats: Sequence[ast.expr]) -> tuple[Expr, ...]:
        """Reads several expressions."""
        return tuple([self.expr(a) for a in ats])

    def buffer(self, at: ast.expr) -> Buffer:
        """Reads the name of a buffer."""
        if not isinstance(at, ast.Name):
            raise self.error(at, f"expected the name of a buffer, not `{ast.unparse(at)}`")
        found = self.scope.get(at.id)
        if not isinstance(found, Buffer):
            raise self.error(
                at, f"`{at.id}` is not a buffer" if found is not None else f"`{at.id}` is not defined here"
            )
        return found

    def text(self, at: ast.expr) -> str:
        """Reads a string."""
        if isinstance(at, ast.Constant) and isinstance(at.value, str):
            return at.value
        raise self.error(at, f"expected a string, not `{ast.unparse(at)}`")

    def region(self, at: ast.expr) -> Region:
        """Reads a region, as in `A[0:4, vk]`."""
        if not isinstance(at, ast.Subscript):
            raise self.error(at, f"expected a region such as A[0:4, i], not `{ast.unparse(at)}`")
        buffer = self.buffer(at.value)
        ranges = tuple([self.range(r) for r in elements(at.slice)])
        if len(ranges) != buffer.rank:
            raise self.error(at, f"{buffer.name} has {buffer.rank} dimensions, not {len(ranges)}")
        return Region(buffer, ranges)

    def range(self, at: ast.expr) -> Range:
        """Reads one dimension of a region."""
        match at:
            case ast.Slice(ast.expr() as lower, ast.expr() as upper, None):
                begin = self.expr(lower)
                return Range(begin, extent_of(begin, self.expr(upper)))
            case ast.Slice():
                raise self.error(at, "a range has a begin and an end, and no step")
        return Range(self.expr(at), ONE)

    def declared(self, name: str, at: ast.expr, keywords: Sequence[ast.keyword], scope: str) -> Buffer:
        """Reads the type of a buffer, as in `f32[8, n]`, and its strides and scope."""
        if not isinstance(at, ast.Subscript):
            raise self.error(at, f"expected the type of a buffer, such as f32[8, 8], not `{ast.unparse(at)}`")
        strides: Sequence[Expr] | None = None
        for k in keywords:
            if k.arg == "strides":
                strides = self.exprs(elements(k.value))
            elif k.arg == "scope":
                scope = self.text(k.value)
            else:
                raise self.error(k, f"expected strides= or scope=, not `{k.arg}`")
        shape = self.exprs(elements(at.slice))
        if strides is not None and len(strides) != len(shape):
            raise self.error(at, f"{len(shape)} dimensions have {len(shape)} strides, not {len(strides)}")
        return Buffer(name, shape, self.dtype(at.value), scope, strides)

    def constant(self, at: ast.expr) -> Any:
        """Reads a Python literal."""
        try:
            return ast.literal_eval(at)
        except ValueError:
            raise self.error(at, f"expected a constant, not `{ast.unparse(at)}`") from None

    def params(self, args: Sequence[ast.arg]) -> tuple[Param, ...]:
        """Reads the parameters: scalars first, since shapes may name those that come later."""
        for p in args:
            if isinstance(p.annotation, ast.Name):
                self.scope[p.arg] = Var(p.arg, self.dtype(p.annotation))
        for p in args:
            if p.annotation is None:
                raise self.error(p, f"the parameter {p.arg} has no type")
            for n in ast.walk(p.annotation):
                if isinstance(n, ast.Subscript):
                    self.symbols(n.slice)
        return tuple([self.param(p) for p in args])

    def symbols(self, shape: ast.expr) -> None:
        """Declares the names in *shape* that are not known yet."""
        functions = _called(shape)
        for n in ast.walk(shape):
            if isinstance(n, ast.Name) and n.id not in self.scope and n not in functions:
                self.scope[n.id] = Var(n.id, INDEX)

    def param(self, p: ast.arg) -> Param:
        """Reads one parameter."""
        match p.annotation:
            case ast.Call(ast.Name("buffer"), [scope, type_], keywords):
                made = self.declared(p.arg, type_, keywords, self.text(scope))
            case ast.Subscript() as type_:
                made = self.declared(p.arg, type_, (), "global")
            case ast.Name():
                scalar: Var = self.scope[p.arg]
                return scalar
            case _:
                raise self.error(p, f"expected a type such as i64 or f32[8, n] for the parameter {p.arg}")
        self.scope[p.arg] = made
        return made


def elements(at: ast.expr) -> list[ast.expr]:
    """Returns the elements of a tuple, or the one expression."""
    return at.elts if isinstance(at, ast.Tuple) else [at]


def _called(at: ast.expr) -> set[ast.expr]:
    """Returns the names in *at* that are those of functions."""
    return {n.func for n in ast.walk(at) if isinstance(n, ast.Call)}
