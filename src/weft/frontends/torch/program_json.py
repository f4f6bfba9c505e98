"""Checks of the JSON of an exported program: PyTorch's reader evaluates some of its texts, and runs code with others."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from torch.utils import _pytree as pytree

from weft.frontends.torch.complex_numbers import is_known
from weft.support.errors import ModelError
from weft.support.text import printable_line

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_PATH: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.]{0,499}")
_WORD: Final = re.compile(r"[A-Za-z0-9_.+:<=-]{0,40}")
_OPERATOR: Final = re.compile(
    r"torch\.ops\.(aten|prims)\.\w+(\.\w+)?|torch\.ops\.higher_order\.wrap_with_(set_grad_enabled|autocast)"
    r"|_operator\.(add|sub|mul|floordiv|mod|truediv|pow|neg|eq|ne|lt|le|gt|ge|and_|or_|not_|getitem)"
    r"|math\.(ceil|floor|trunc)|torch\.sym_(max|min|float|int|not|sum|ite)"
)
_FUNCTIONS: Final = frozenset(
    (
        *(
            "Symbol",
            "Integer",
            "Rational",
            "Float",
            "Add",
            "Mul",
            "Pow",
            "Mod",
            "FloorDiv",
            "CeilDiv",
            "CleanDiv",
            "PythonMod",
        ),
        *(
            "Max",
            "Min",
            "Equality",
            "Unequality",
            "Eq",
            "Ne",
            "Lt",
            "Le",
            "Gt",
            "Ge",
            "And",
            "Or",
            "Not",
            "true",
            "false",
        ),
        *(
            "StrictLessThan",
            "LessThan",
            "StrictGreaterThan",
            "GreaterThan",
            "BooleanTrue",
            "BooleanFalse",
            "ToFloat",
            "Where",
        ),
        *("IntTrueDiv", "FloatTrueDiv", "PowByNatural", "ModularIndexing", "CeilToInt", "FloorToInt", "TruncToInt"),
    )
)
_DIALECTS: Final = ("ATEN", "TRAINING")
"""The kinds of programs that are read: functional ones, and those as traced, with changes in place."""

_SYMBOL: Final = re.compile(r"[a-z]{1,3}[0-9]{1,6}")
LONGEST: Final = 4000
"""The most characters of a formula of sizes."""
LARGEST_POWER: Final = 16


def checked_program(program: Any, name: str) -> Any:
    """Returns the JSON of a program without the parts that Weft does not need; raises `ModelError` for an invalid text.

    Guards are code, and are left out; so are the parts of nodes' metadata but the lines of the user's program. How inputs are
    nested in the user's call is not needed: they are given flat.
    """
    if not isinstance(program, dict) or not isinstance(program.get("graph_module"), dict):
        raise ModelError(f"{name} holds no exported program", hint="export the model again")
    program["guards_code"] = []
    program["verifiers"] = [v for v in _listed(program.get("verifiers")) if v in _DIALECTS]
    ranges = program.get("range_constraints")
    if isinstance(ranges, dict):  # those of formulas of symbols follow from the symbols'
        program["range_constraints"] = {k: v for k, v in ranges.items() if _SYMBOL.fullmatch(k) or not _is_formula(k)}
    module = program["graph_module"]
    module["metadata"], module["treespec_namedtuple_fields"] = {}, {}
    module["module_call_graph"] = [{"fqn": "", "signature": _flat_call(module["signature"])}]
    _check(program, "", name)
    return program


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _flat_call(signature: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the signature of the user's call, with all inputs one after another; parameters and buffers are none of them."""
    given = [s for s in signature["input_specs"] if not {"user_input", "constant_input"}.isdisjoint(s)]
    made = [s for s in signature["output_specs"] if "user_output" in s]
    spec = pytree.treespec_dumps(pytree.tree_structure(((0,) * len(given), {})))
    out = pytree.treespec_dumps(pytree.tree_structure((0,) * len(made)))
    return {"inputs": [], "outputs": [], "in_spec": spec, "out_spec": out, "forward_arg_names": None}


def _check(value: Any, key: str, name: str) -> None:
    """Checks a value that stands under *key*, and all in it."""
    waiting = [(value, key)]
    while waiting:
        found, under = waiting.pop()
        if isinstance(found, dict):
            if under == "metadata":
                for k in [k for k in found if k != "stack_trace"]:
                    del found[k]
            for k in found:
                _check_text(k, "as_name", name) if under in _KEYED else _check_text(k, "path_name", name)
            waiting += [(v, k) for k, v in found.items()] if under not in _KEYED else [(v, "") for v in found.values()]
        elif isinstance(found, list):
            waiting += [(v, under) for v in found]
        elif isinstance(found, str):
            _check_text(found, under, name)


_KEYED: Final = ("tensor_values", "sym_int_values", "sym_bool_values", "sym_float_values", "custom_obj_values")
"""Objects whose keys are names of nodes."""


def _is_formula(text: str) -> bool:
    """Tells whether a text is a formula of sizes: numbers, symbols, and calls of functions that are known to be such."""
    if len(text) > LONGEST:
        return False
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return all(_is_of_formula(n) for n in ast.walk(tree))


def _is_of_formula(n: ast.AST) -> bool:
    if isinstance(n, ast.Call):
        return isinstance(n.func, ast.Name) and _is_small_power(n)
    if isinstance(n, ast.Name):
        return n.id in _FUNCTIONS or _SYMBOL.fullmatch(n.id) is not None
    if isinstance(n, ast.Constant):
        return isinstance(n.value, bool | int | float) or (
            isinstance(n.value, str) and re.fullmatch(r"[a-z]{1,3}[0-9]{1,6}|[0-9.e+-]{1,40}", n.value) is not None
        )
    if isinstance(n, ast.BinOp):
        return not isinstance(n.op, ast.Pow) or (
            isinstance(n.right, ast.Constant) and n.right.value in range(LARGEST_POWER)
        )
    operators = (
        ast.Expression,
        ast.keyword,
        ast.Load,
        ast.UnaryOp,
        ast.USub,
        ast.Add,
        ast.Sub,
        ast.Mult,
        ast.FloorDiv,
        ast.Mod,
    )
    comparisons = (ast.Pow, ast.Div, ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
    return isinstance(n, operators + comparisons)


def _is_small_power(n: ast.Call) -> bool:
    """Tells whether a call is no power, or one whose exponent is a small number."""
    assert isinstance(n.func, ast.Name)
    if n.func.id not in ("Pow", "PowByNatural"):
        return True
    exponent = n.args[1] if len(n.args) == 2 else None
    inner = exponent.args[0] if isinstance(exponent, ast.Call) and len(exponent.args) == 1 else exponent
    inner = inner.operand if isinstance(inner, ast.UnaryOp) else inner
    return isinstance(inner, ast.Constant) and inner.value in range(LARGEST_POWER)


def _matches(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text) is not None


def _is_operator(text: str) -> bool:
    """Tells whether a text names an operator of PyTorch's, or one that Weft imports of another package."""
    if _OPERATOR.fullmatch(text):
        return True
    name = text.removeprefix("torch.ops.")
    return is_known(name) and name != text


def _anything(text: str) -> bool:
    return True


_TEXTS: Final[dict[str, Callable[[str], bool]]] = {
    "target": _is_operator,
    "expr_str": _is_formula,
    "as_string": _anything,
    "as_strings": _anything,
    "stack_trace": _anything,
    "in_spec": _anything,
    "out_spec": _anything,
    **dict.fromkeys(("name", "as_name", "user_input_name"), _matches(_NAME)),
    **dict.fromkeys(
        ("parameter_name", "buffer_name", "tensor_constant_name", "path_name", "fqn"),
        lambda t: not t or bool(_PATH.fullmatch(t)),
    ),
    **dict.fromkeys(("type", "torch_version", "verifiers", "as_float", "as_floats", "real", "imag"), _matches(_WORD)),
}
"""The allowed texts, by the key that they stand under; under any other, none may stand."""


def _check_text(text: str, key: str, name: str) -> None:
    if key not in _TEXTS or not _TEXTS[key](text):
        shown = printable_line(text[:60])
        raise ModelError(
            f"{name} has {shown!r} for {key or 'a text'!r}, which an exported program of plain operators does not have",
            hint="export the model again, without operators of its own",
        )
    if key == "target" and _OPERATOR.fullmatch(text) is None:
        _check_registered(text, name)


def _check_registered(text: str, name: str) -> None:
    """Raises `ModelError` for an operator of a package that this process has not imported."""
    package, operator = text.removeprefix("torch.ops.").split(".")[:2]
    if not hasattr(getattr(torch.ops, package), operator):
        raise ModelError(
            f"{name} calls {package}.{operator}, which is not registered here", hint=f"import {package} first"
        )
