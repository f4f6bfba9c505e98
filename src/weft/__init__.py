"""Weft: an end-to-end optimizing compiler for deep learning.

Public names resolve on first use (PEP 562), so that `import weft` stays fast and a loaded model never imports
the compiler. `_PUBLIC` says where each one lives.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # the same names, for type checkers and editors; tests/test_house.py keeps the two alike
    from weft.driver.build import build as build
    from weft.driver.compile import compile as compile
    from weft.frontends.register_op import register_op as register_op
    from weft.integrations.from_jax import from_jax as from_jax
    from weft.integrations.inference_session import InferenceSession as InferenceSession
    from weft.runtime.model import Model as Model
    from weft.runtime.model import load as load
    from weft.runtime.session_binding import IOBinding as IOBinding
    from weft.runtime.session_options import ExecutionMode as ExecutionMode
    from weft.runtime.session_options import GraphOptimizationLevel as GraphOptimizationLevel
    from weft.runtime.session_options import RunOptions as RunOptions
    from weft.runtime.session_options import SessionOptions as SessionOptions
    from weft.runtime.session_options import set_default_logger_severity as set_default_logger_severity
    from weft.runtime.session_options import set_seed as set_seed
    from weft.runtime.session_providers import get_all_providers as get_all_providers
    from weft.runtime.session_providers import get_available_providers as get_available_providers
    from weft.runtime.session_providers import get_device as get_device
    from weft.runtime.session_values import OrtValue as OrtValue
    from weft.runtime.session_values import OrtValueVector as OrtValueVector
    from weft.support.dim import Dim as Dim
    from weft.support.errors import ArtifactError as ArtifactError
    from weft.support.errors import CacheError as CacheError
    from weft.support.errors import DeviceError as DeviceError
    from weft.support.errors import InputError as InputError
    from weft.support.errors import LoweringError as LoweringError
    from weft.support.errors import ModelError as ModelError
    from weft.support.errors import RecordsError as RecordsError
    from weft.support.errors import RuntimeFailure as RuntimeFailure
    from weft.support.errors import ScheduleError as ScheduleError
    from weft.support.errors import ToolchainError as ToolchainError
    from weft.support.errors import UnsupportedOperators as UnsupportedOperators
    from weft.support.errors import WeftError as WeftError

__version__: Final = "0.1.0"

_ERRORS: Final = "weft.support.errors"
_OPTIONS: Final = "weft.runtime.session_options"
_PROVIDERS: Final = "weft.runtime.session_providers"
_PUBLIC: Final[dict[str, tuple[str, str]]] = {
    "ArtifactError": (_ERRORS, "ArtifactError"),
    "CacheError": (_ERRORS, "CacheError"),
    "DeviceError": (_ERRORS, "DeviceError"),
    "Dim": ("weft.support.dim", "Dim"),
    "ExecutionMode": (_OPTIONS, "ExecutionMode"),
    "GraphOptimizationLevel": (_OPTIONS, "GraphOptimizationLevel"),
    "InferenceSession": ("weft.integrations.inference_session", "InferenceSession"),
    "IOBinding": ("weft.runtime.session_binding", "IOBinding"),
    "InputError": (_ERRORS, "InputError"),
    "LoweringError": (_ERRORS, "LoweringError"),
    "Model": ("weft.runtime.model", "Model"),
    "ModelError": (_ERRORS, "ModelError"),
    "OrtValue": ("weft.runtime.session_values", "OrtValue"),
    "OrtValueVector": ("weft.runtime.session_values", "OrtValueVector"),
    "RecordsError": (_ERRORS, "RecordsError"),
    "RunOptions": (_OPTIONS, "RunOptions"),
    "RuntimeFailure": (_ERRORS, "RuntimeFailure"),
    "ScheduleError": (_ERRORS, "ScheduleError"),
    "SessionOptions": (_OPTIONS, "SessionOptions"),
    "ToolchainError": (_ERRORS, "ToolchainError"),
    "UnsupportedOperators": (_ERRORS, "UnsupportedOperators"),
    "WeftError": (_ERRORS, "WeftError"),
    "build": ("weft.driver.build", "build"),
    "compile": ("weft.driver.compile", "compile"),
    "from_jax": ("weft.integrations.from_jax", "from_jax"),
    "get_all_providers": (_PROVIDERS, "get_all_providers"),
    "get_available_providers": (_PROVIDERS, "get_available_providers"),
    "get_device": (_PROVIDERS, "get_device"),
    "load": ("weft.runtime.model", "load"),
    "register_op": ("weft.frontends.register_op", "register_op"),
    "set_default_logger_severity": (_OPTIONS, "set_default_logger_severity"),
    "set_seed": (_OPTIONS, "set_seed"),
}

_RUNTIME: Final = {"InferenceSession": ("weft.runtime.session", "InferenceSession")}
"""The implementations of public names in the package weft-runtime, which has no compiler: module and attribute."""

_MODULES: Final = ("backend", "capi", "tune")
"""Modules that are attributes without being imported."""

__all__ = ["__version__", *_PUBLIC]  # noqa: PLE0604 (computed on purpose)


def __getattr__(name: str) -> object:
    """Imports the module that defines a public name, on first use."""
    if name not in _PUBLIC and name not in _MODULES:
        raise AttributeError(f"module 'weft' has no attribute {name!r}; it has {', '.join(sorted(_PUBLIC))}")
    module, attribute = _PUBLIC.get(name, (f"weft.{name}", ""))
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # something else is missing
        if name not in _RUNTIME:
            raise AttributeError(
                f"weft.{name} needs the compiler, and only weft-runtime is installed; install weft in its place"
            ) from None
        module, attribute = _RUNTIME[name]
        found = importlib.import_module(module)
    value: object = getattr(found, attribute) if attribute else found
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Lists the public names, those not yet imported too."""
    return sorted({*globals(), *_PUBLIC})
