"""`weft.InferenceSession`: ONNX models, compiled when they are opened, behind ONNX Runtime's interface."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from onnx import ModelProto

import weft.driver.compile as driver
from weft.frontends.onnx.read import read_model
from weft.runtime import session
from weft.runtime.model import Model
from weft.runtime.session_options import GraphOptimizationLevel, SessionOptions
from weft.runtime.session_values import ModelMetadata


class InferenceSession(session.InferenceSession):
    """A model called as ONNX Runtime calls it.

        session = weft.InferenceSession("model.onnx")
        (probabilities,) = session.run(None, {"image": image})

    The model is the path or the bytes of an ONNX file, which is compiled, or of a model saved by Weft. `SessionOptions` and
    providers that can't be honoured raise `InputError`; nothing is ignored. Raises `ModelError` for a model that can't be
    compiled. A session may be called from several threads at once, and after a fork.
    """

    def _open(self, source: object, options: SessionOptions) -> tuple[Model, Callable[[], ModelMetadata]]:
        saved = session.load_saved(source, options)
        if saved is not None:
            return saved, session.no_metadata
        if isinstance(source, bytearray | memoryview):
            source = bytes(source)
        model = driver.compile(
            source,
            threads=options.intra_op_num_threads or None,
            opt_level=GraphOptimizationLevel(options.graph_optimization_level).opt_level,
            shapes=options.free_dimensions or None,
        )
        if isinstance(source, str | os.PathLike):
            return model, cache(partial(read_metadata, Path(source)))  # most callers never ask
        metadata = read_metadata(source)  # now, so that the model's bytes need not be kept
        return model, lambda: metadata


def read_metadata(source: object) -> ModelMetadata:
    """Returns what an ONNX model says about itself, without reading its weights; raises `ModelError`."""
    assert isinstance(source, Path | bytes | ModelProto)  # else it would not have compiled
    proto = read_model(source).proto
    return ModelMetadata(
        producer_name=proto.producer_name,
        graph_name=proto.graph.name,
        domain=proto.domain,
        description=proto.doc_string,
        graph_description=proto.graph.doc_string,
        version=proto.model_version,
        custom_metadata_map={p.key: p.value for p in proto.metadata_props},
    )
