"""`weft.backend` whose models run on the device that `$WEFT_TARGET` names: for suites that take a backend of ONNX.

WEFT_TARGET=webgpu python onnx_suite.py tests.driver.device.device_backend
"""

from __future__ import annotations

import os
from typing import Any

from onnx import ModelProto

from weft.backend import Backend as WeftBackend
from weft.driver.build import build
from weft.driver.cache.code_cache import default_cache
from weft.graph import Graph
from weft.integrations.onnx_backend import WeftRep
from weft.runtime.model import Model


class DeviceRep(WeftRep):
    """A model that runs on a device."""

    def _compiled(self, graph: Graph) -> Model:
        target = os.environ.get("WEFT_TARGET", "webgpu")
        return Model(build(graph, target, self._options, None, default_cache()).package)


class Backend(WeftBackend):
    """Compiles ONNX models for a device, and runs them there."""

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> WeftRep:
        """Compiles the model."""
        return DeviceRep(model, None, kwargs)
