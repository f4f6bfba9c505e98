"""`weft.InferenceSession`: ONNX Runtime's interface, for ONNX models that are compiled when the session is created."""

from __future__ import annotations

import weft.driver.compile as driver
from weft.runtime import session
from weft.runtime.model import Model
from weft.runtime.session_options import GraphOptimizationLevel, SessionOptions


class InferenceSession(session.InferenceSession):
    """A model behind ONNX Runtime's interface.

        session = weft.InferenceSession("model.onnx")
        (probabilities,) = session.run(None, {"image": image})

    The model is the path or the bytes of an ONNX file, which is compiled, or of a model saved by Weft. Session options and
    providers that Weft can't honour raise `InputError`, or warn if they don't affect results. A session may be called from
    several threads at once, and after a fork. Raises `ModelError` for a model that can't be compiled.
    """

    def _open(self, source: object, options: SessionOptions) -> Model:
        saved = session.load_saved(source, options)
        if saved is not None:
            return saved
        if isinstance(source, bytearray | memoryview):
            source = bytes(source)
        return driver.compile(
            source,
            threads=options.intra_op_num_threads or None,
            opt_level=GraphOptimizationLevel(options.graph_optimization_level).opt_level,
            shapes=options.free_dimensions or None,
            denormals=options.denormals or "keep",
            spinning=options.spinning,
        )
