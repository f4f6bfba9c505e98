"""Imports every family of translations, so that the table of operators is complete."""

import importlib
import pkgutil
from pathlib import Path

from weft.frontends.onnx.registry import TABLE

for _module in pkgutil.iter_modules([str(Path(__file__).parent)]):
    if _module.name.startswith("ops_"):
        importlib.import_module(f"weft.frontends.onnx.{_module.name}")
TABLE.seal()
