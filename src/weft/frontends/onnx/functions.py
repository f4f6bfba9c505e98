"""Expands functions: those that a model brings with it, and operators that ONNX defines by others and Weft has no entry for."""

from __future__ import annotations

from typing import Final

import onnx
from onnx import ModelProto, inliner

from weft.frontends.onnx.check import all_nodes, domain_of, opsets_of
from weft.frontends.onnx.registry import TABLE

MOST_ROUNDS: Final = 4
"""How often expanding may uncover further functions before it is given up."""


def expand_functions(model: ModelProto) -> ModelProto:
    """Returns *model* with calls of functions replaced by their bodies."""
    if model.functions:
        model = inliner.inline_local_functions(model)
    for _ in range(MOST_ROUNDS):
        wanted = _expandable(model)
        if not wanted:
            break
        model = inliner.inline_selected_functions(model, wanted, inline_schema_functions=True)
    return model


def _expandable(model: ModelProto) -> list[tuple[str, str]]:
    """Returns the operators that are not in the table, but that ONNX defines as functions."""
    opsets = opsets_of(model)
    used = {(domain_of(n), n.op_type) for n in all_nodes(model.graph)} - set(TABLE)
    return sorted(key for key in used if key[0] in opsets and _is_function(*key, opsets[key[0]]))


def _is_function(domain: str, name: str, version: int) -> bool:
    if not onnx.defs.has(name, version, domain):
        return False
    schema = onnx.defs.get_schema(name, version, domain)
    return any(getattr(schema, kind) for kind in ("has_function", "has_context_dependent_function"))
