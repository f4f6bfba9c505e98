"""MLIR's bytecode as text, by the bindings of MLIR that the package jaxlib has."""

from __future__ import annotations

from typing import Any, Final

from weft.support.errors import ModelError, ToolchainError
from weft.support.lazy_import import resolve

_SHOWN: Final = 200


def text_of_bytecode(data: bytes, name: str) -> str:
    """Returns the text of a module in bytecode, *name*d in messages.

    Raises `ToolchainError` where jaxlib is not installed, and `ModelError` for bytecode that it can't read.
    """
    new_context, register, deserialize = _bindings(name)
    try:
        with new_context() as context:
            register(context)
            portable = deserialize(context, data)
            return str(portable.operation.get_asm(enable_debug_info=True))
    except Exception as error:  # the bindings raise errors of types of their own
        told = str(error).strip().partition("\n")[0][:_SHOWN]
        raise ModelError(
            f"{name} is damaged bytecode of StableHLO: {told}", hint="export the function again"
        ) from error


def _bindings(name: str) -> list[Any]:
    """Returns what makes a context, gives it the dialect, and reads bytecode in it."""
    dialect = "jaxlib.mlir.dialects.stablehlo"
    try:
        places = ("jaxlib.mlir.ir:Context", f"{dialect}:register_dialect", f"{dialect}:deserialize_portable_artifact")
        return [resolve(place) for place in places]
    except ModuleNotFoundError as error:
        raise ToolchainError(
            f"reading {name}, which is bytecode, needs jaxlib, which is not installed",
            hint="install Weft with its extra 'jax', or save the text: exported.mlir_module()",
        ) from error
