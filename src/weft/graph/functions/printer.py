"""Writes functions as text that `parser` reads back as equal ones."""

from __future__ import annotations

from weft.graph.functions.nodes import (
    Apply,
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


def print_functions(functions: Functions) -> str:
    """Returns the text of *functions*."""
    return "\n".join("\n".join(_function_lines(f, "")) + "\n" for f in functions)


def _function_lines(f: Function, indent: str) -> list[str]:
    head = f"{indent}def {f.name}({', '.join(map(_parameter, f.parameters))}):"
    return [head, *_block_lines(f.body, indent + "    ")]


def _parameter(p: Parameter) -> str:
    return p.name if p.type is None else f"{p.name}: {p.type if p.type.shape else f'{p.type.dtype}[()]'}"


def _block_lines(body: Block, indent: str) -> list[str]:
    lines: list[str] = []
    for s in body.bindings:
        if isinstance(s, Local):
            lines += _function_lines(s.function, indent)
        else:
            lines.append(f"{indent}{', '.join(s.names)} = {expression_text(s.value)}")
    return [*lines, f"{indent}return {expression_text(body.result)}"]


def expression_text(e: Expression) -> str:
    """Returns the text of an expression."""
    match e:
        case Name():
            return e.name
        case Value():
            return repr(e.value).replace("inf", "1e999") if e.kind == "float" else repr(e.value)
        case Group(items=(only,)):
            return f"({_operand(only)},)"
        case Group():
            return f"({', '.join(map(_operand, e.items))})"
        case Apply():
            given = [*map(_operand, e.arguments), *[f"{k}={_operand(v)}" for k, v in e.keywords]]
            return f"{_operand(e.callee)}({', '.join(given)})"
        case Choose():
            return f"{_operand(e.then)} if {_operand(e.condition)} else {_operand(e.other)}"
        case Lambda(function=f):
            return f"lambda {', '.join(p.name for p in f.parameters)}: {_operand(f.body.result)}"


def _operand(e: Expression) -> str:
    return f"({expression_text(e)})" if isinstance(e, Choose | Lambda) else expression_text(e)
