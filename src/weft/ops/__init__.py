"""The operator library: one file for each family, one block for each operator."""

import importlib
import pkgutil

from weft.ops.registry import OPERATORS, Operator, TensorType, operator

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
OPERATORS.seal()

__all__ = ["OPERATORS", "Operator", "TensorType", "operator"]
