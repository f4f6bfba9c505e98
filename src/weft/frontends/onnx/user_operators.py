"""Nodes of ONNX models that call operators from outside of Weft (`weft.register_op`)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx.defs

from weft.frontends.onnx import translations  # noqa: F401  (fills TABLE, and tells Weft's own entries apart)
from weft.frontends.onnx.call import Call, Results
from weft.frontends.onnx.registry import TABLE, translates
from weft.ops import OPERATORS, Operator
from weft.support.errors import InputError


def check_free(key: tuple[str, str]) -> None:
    """Raises `InputError` where the operator *key*, a domain and a name, has a translation, or is one of ONNX's."""
    domain, name = key
    if key in TABLE or domain.split(".")[:2] == ["ai", "onnx"] or onnx.defs.has(name, domain):
        raise InputError(
            f"the ONNX operator {domain}::{name} has a meaning already",
            hint="register yours under a domain of your own",
        )


def enter(key: tuple[str, str], op: str) -> None:
    """Lets nodes of the operator *key*, a domain and a name, be calls of *op*."""
    domain, name = key
    translates(name, domain=domain)(_translation(OPERATORS[op]))


def _translation(op: Operator) -> Callable[[Call], Results]:
    def translate(c: Call) -> Results:
        _check_inputs(c, op)
        return c.add_many(op.name, *c.inputs, **{name: _value(c, op, name) for name in _named(c, op)})

    return translate


def _check_inputs(c: Call, op: Operator) -> None:
    """Raises `ModelError` for another number of inputs than the operator's formula takes, or where a needed one is absent."""
    tensors = [p for p in op.parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY]
    if tensors[-1].kind is inspect.Parameter.VAR_POSITIONAL:
        return
    if len(c.inputs) > len(tensors):
        c.fail(f"it has {len(c.inputs)} inputs, and {op.name} takes {len(tensors)} at most")
    for i, p in enumerate(tensors):
        if p.default is inspect.Parameter.empty and not c.has(i):
            c.fail(f"its input {i} ({p.name}) is missing")


def _named(c: Call, op: Operator) -> list[str]:
    """Returns the names of the node's attributes; raises `ModelError` for one that the operator lacks, or a needed one absent."""
    for name in c.attributes:
        if name not in op.attributes:
            c.fail(f"{op.name} has no attribute {name!r}", f"its attributes are: {', '.join(op.attributes) or 'none'}")
    for name, p in op.attributes.items():
        if p.default is inspect.Parameter.empty and name not in c.attributes:
            c.fail(f"its attribute {name!r} is missing")
    return list(c.attributes)


def _value(c: Call, op: Operator, name: str) -> Any:
    """Returns an attribute as the formula takes it: a whole number where its default is a truth value is one."""
    value = c.attributes[name]
    if isinstance(value, np.ndarray) or not isinstance(value, int | float | str | list):
        c.fail(f"its attribute {name!r} is no number, text, or list of them", "give a tensor as an input")
    return bool(value) if isinstance(op.attributes[name].default, bool) else value
