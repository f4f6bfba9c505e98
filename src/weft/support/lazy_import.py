"""Names that are imported when they are used, from tables of `module:attribute`; `tests/test_house.py` resolves all of them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from typing import Any


def resolve(place: str) -> Any:
    """Returns the attribute that *place*, a text `module:attribute`, names; raises `ImportError` or `AttributeError`."""
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)


def import_all(path: Iterable[str], package: str) -> None:
    """Imports all modules of *package*, those of its sub-packages too, so that their registrations are made."""
    for module in pkgutil.walk_packages(path, f"{package}."):
        importlib.import_module(module.name)
