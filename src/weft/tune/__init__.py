"""Search for schedules: spaces, features, cost models, measurement.

The module is the function, too: `weft.tune("model.onnx", minutes=5, records="tune.db")` is `weft.tune.tune_model.tune`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, Final

from weft.support.lazy_import import resolve

TUNE: Final = "weft.tune.tune_model:tune"


class _CallableModule(ModuleType):
    """A module that can be called: `weft.tune` names both the layer and its main function."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Tunes a model: see `weft.tune.tune_model.tune`."""
        return resolve(TUNE)(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
