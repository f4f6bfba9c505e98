"""JAX as a frontend."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from weft.frontends.content import is_instance, name_of
from weft.frontends.frontend import Exporter, Shapes
from weft.frontends.jax.bytecode import text_of_bytecode
from weft.frontends.jax.claims import BYTECODE, EXPORTED, JITTED, LOWERED
from weft.frontends.jax.importer import from_stablehlo
from weft.frontends.jax.lowered_function import LoweredFunction
from weft.frontends.jax.text.parser import parse_module
from weft.graph import Graph
from weft.support.errors import InputError, ModelError, ToolchainError
from weft.support.lazy_import import resolve


class JaxFrontend:
    """Modules of StableHLO: paths and bytes of their text or bytecode, and functions that JAX has lowered or exported."""

    def files(self, path: Path) -> list[Path]:
        """Returns the one file."""
        return [path]

    def export(self, model: Any, inputs: Sequence[Any] | Mapping[str, Any], shapes: Shapes | None) -> LoweredFunction:
        """Lowers a function that `jax.jit` made, called with *inputs*; raises `InputError` for one that is lowered already."""
        if not is_instance(model, JITTED):
            raise InputError("example_inputs are given for a function that is lowered already", hint="leave them out")
        return lowered(model, inputs)

    def to_graph(self, model: Any, shapes: Shapes | None = None) -> Graph:
        """Imports a module; see `from_stablehlo`."""
        if isinstance(model, LoweredFunction):
            return from_stablehlo(parse_module(model.text, "the function"), shapes, model.weights, model.names)
        text, where = _text_of(model)
        return from_stablehlo(parse_module(text, where), shapes)


def lowered(fn: Callable[..., Any], given: Sequence[Any] | Mapping[str, Any]) -> LoweredFunction:
    """Returns *fn* lowered by JAX for arguments like those *given*; raises `ToolchainError` where JAX is not installed."""
    try:
        found: LoweredFunction = resolve("weft.frontends.jax.lowering:lower")(fn, given)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("jax", "jaxlib"):
            raise
        raise ToolchainError(
            "lowering a function needs jax, which is not installed", hint="install Weft with its extra 'jax'"
        ) from error
    return found


def _text_of(model: Any) -> tuple[str, str]:
    """Returns the text of a module, and its name in messages."""
    if is_instance(model, JITTED):
        raise ModelError(
            "a function of JAX is not lowered yet",
            hint="give values to try it with: weft.from_jax(fn, *args)",
        )
    if is_instance(model, LOWERED):
        return model.as_text(debug_info=True), "the lowered function"
    if is_instance(model, EXPORTED):
        return model.mlir_module(), "the exported function"
    data = model if isinstance(model, bytes) else Path(model).read_bytes()
    if data.startswith(BYTECODE):
        return text_of_bytecode(data, name_of(model)), name_of(model)
    return data.decode("utf-8-sig", "replace"), name_of(model)


FRONTEND: Final[Exporter] = JaxFrontend()
