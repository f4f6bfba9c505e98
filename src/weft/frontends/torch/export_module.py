"""From a module of PyTorch's, and inputs to try it with, to an exported program."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram

from weft.frontends.frontend import Shapes
from weft.frontends.torch.source_lines import line_of_error
from weft.frontends.torch.whole_layers import shapes_of_recurrent_layers
from weft.support.dim import Dim
from weft.support.errors import InputError, ModelError


def export_module(
    module: torch.nn.Module, inputs: Sequence[Any] | Mapping[str, Any], shapes: Shapes | None
) -> ExportedProgram:
    """Exports *module*, called with *inputs*, in order or by name; dimensions that *shapes* names, or ranges, are symbolic.

    Raises `ModelError` where PyTorch can't export it, with the first line of its reason.
    """
    args = () if isinstance(inputs, Mapping) else tuple([_tensor(v) for v in inputs])
    kwargs = {k: _tensor(v) for k, v in inputs.items()} if isinstance(inputs, Mapping) else {}
    try:
        bound = inspect.signature(module.forward).bind(*args, **kwargs)
    except TypeError as error:
        raise InputError(
            f"example_inputs are not what the module takes: {error}", hint="give one for each input"
        ) from error
    made: dict[str, torch.export.Dim] = {}
    dynamic = {name: _dynamic(name, value, (shapes or {}).get(name), made) for name, value in bound.arguments.items()}
    try:
        with torch.no_grad(), shapes_of_recurrent_layers(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's warnings about its own parts
            return exported(module, args, kwargs, dynamic if made else None)
    except Exception as error:  # of whatever kind: it is PyTorch's tracing of the user's program
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelError(
            f"PyTorch can't export the {type(module).__name__}: {reason}",
            where=line_of_error(error, __file__),
            hint="see that torch.export.export(module, inputs) succeeds",
        ) from error


def exported(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, dynamic: Any = None
) -> ExportedProgram:
    """Exports by running the module, and where that fails by reading it (strict), which knows some numbers that the data tell.

    Raises the error of the first, if both fail.
    """
    try:
        made: ExportedProgram = torch.export.export(module, args, kwargs or None, dynamic_shapes=dynamic)
    except Exception as error:
        try:
            made = torch.export.export(module, args, kwargs or None, dynamic_shapes=dynamic, strict=True)
        except Exception:  # its reasons are many lines, of PyTorch's own files
            raise error from None
    return made


def _tensor(value: Any) -> Any:
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value


def _dynamic(name: str, value: Any, shape: Any, made: dict[str, Any]) -> dict[int, Any] | None:
    """Returns the symbolic dimensions of an input by their numbers, of which each name is one in all inputs."""
    if not isinstance(value, torch.Tensor) or not isinstance(shape, Sequence) or isinstance(shape, str):
        return None
    found: dict[int, Any] = {}
    for d, size in enumerate(shape):
        if isinstance(size, int):
            continue
        called = size if isinstance(size, str) and size.isidentifier() else f"{name}_dim{d}"
        low, high = (size.low, size.high) if isinstance(size, Dim) else (None, None)
        found[d] = made.setdefault(called, torch.export.Dim(called, min=low, max=high))
    return found
