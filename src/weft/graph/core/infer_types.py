"""Type inference: the types of an operator's results from those of its inputs, memoised over equal calls."""

from __future__ import annotations

from functools import lru_cache
from inspect import signature
from typing import Any, Final

from weft.ops import Operator, TensorType, check_attributes, check_bytes
from weft.support.errors import ModelError

UNFIT: Final = "change what makes these inputs, or how the model was exported; onnx.checker.check_model may say more"
"""The hint of errors about inputs that an operator does not take."""


@lru_cache(maxsize=8192)
def infer_types(
    operator: Operator, types: tuple[TensorType | None, ...], attributes: tuple[tuple[str, Any], ...]
) -> tuple[TensorType, ...]:
    """Returns the types of the results; raises `ModelError` where the operator does not take such inputs."""
    try:
        signature(operator.build).bind(*types, **dict(attributes))
    except TypeError as error:
        raise ModelError(f"{operator.name}: {error}", hint=UNFIT) from error
    check_attributes(attributes)
    made = operator.infer(types, dict(attributes))
    for t in made:
        check_bytes(t.shape, t.dtype)
    return made
