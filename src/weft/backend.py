"""Weft as a backend of ONNX: `prepare`, `run_model`, `run_node`, `supports_device`, as `onnx.backend.base.Backend` has them.

rep = weft.backend.prepare(onnx.load("model.onnx"))
outputs = rep.run([image])
"""

from weft.integrations.onnx_backend import WeftBackend as Backend

is_compatible = Backend.is_compatible
prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device

__all__ = ["Backend", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]
