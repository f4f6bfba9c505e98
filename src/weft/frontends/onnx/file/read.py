"""Reading a model: from a path, bytes or a ModelProto, with errors that describe the fault of the file."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import ModelProto, TensorProto

from weft.frontends.content import HEAD, existing, unreadable
from weft.frontends.onnx.file.tensors import external_file, to_array
from weft.frontends.onnx.file.utf8 import check_names, readable
from weft.frontends.onnx.file.wire import take_weights
from weft.frontends.wire_format import Malformed, Truncated
from weft.graph import Array
from weft.runtime.metadata import NO_VERSION, ModelMetadata
from weft.support.errors import ModelError
from weft.support.mapped_files import map_file


@dataclass
class Source:
    """A model that has been read: its graph, where it lies, and the bytes of weights that were left out of the graph."""

    proto: ModelProto
    name: str = "the model"
    folder: Path | None = None
    weights: dict[int, memoryview] = field(default_factory=dict)

    def initializers(self) -> dict[str, Array]:
        """Returns the weights by name; those stored as raw bytes are views of the bytes read. Strings are left out."""
        found = enumerate(self.proto.graph.initializer)
        return {
            t.name: to_array(t, self.weights.get(k), self.folder) for k, t in found if t.data_type != TensorProto.STRING
        }

    def metadata(self) -> ModelMetadata:
        """Returns the model's metadata: its producer, names, descriptions, version and custom properties."""
        return ModelMetadata(
            producer_name=self.proto.producer_name,
            graph_name=self.proto.graph.name,
            domain=self.proto.domain,
            description=readable(self.proto.doc_string),
            graph_description=readable(self.proto.graph.doc_string),
            version=self.proto.model_version if self.proto.HasField("model_version") else NO_VERSION,
            custom_metadata_map={p.key: p.value for p in self.proto.metadata_props},
        )


def read_model(model: str | Path | bytes | ModelProto) -> Source:
    """Reads *model*; raises `ModelError` where it is no complete ONNX model."""
    if isinstance(model, ModelProto):
        return _checked(Source(model))
    if isinstance(model, bytes):
        return _parse(memoryview(model), "the model given as bytes")
    path = existing(model)
    return _parse(map_file(path), str(path), path.parent)


def files_of(path: str | Path) -> list[Path]:
    """Returns the files that the model at *path* consists of: itself, then those with external data, sorted.

    The weights in the model's own file are not read.
    """
    found = existing(path)
    source = _parse(map_file(found), str(found), found.parent)
    external = {external_file(t, source.folder) for t in _external_tensors(source.proto)}
    return [Path(path), *sorted(external)]


def _external_tensors(proto: ModelProto) -> list[TensorProto]:
    return [t for t in proto.graph.initializer if t.data_location == TensorProto.EXTERNAL]


def _parse(data: memoryview, name: str, folder: Path | None = None) -> Source:
    try:
        skeleton, weights = take_weights(data)
        proto = ModelProto.FromString(skeleton)
    except Truncated as error:
        if _looks_like_onnx(data):
            raise ModelError(
                f"{name} is cut short: it has {len(data)} bytes, and at least {error.missing} more should follow",
                hint="download or export it again",
            ) from error
        raise _not_onnx(data, name) from error
    except (Malformed, DecodeError) as error:
        raise _not_onnx(data, name) from error
    return _checked(Source(proto, name, folder, weights))


def _looks_like_onnx(data: memoryview) -> bool:
    """Tells whether *data* begins as exporters write a model: with a small version number, the first field."""
    return len(data) > 2 and data[0] == 0x08 and 1 <= data[1] < 0x40


def _not_onnx(data: bytes | memoryview, name: str) -> ModelError:
    hint = "Weft reads ONNX files (.onnx); export the model with torch.onnx.export, tf2onnx or the like"
    return unreadable(name, bytes(data[:HEAD]), "an ONNX model", hint)


def _checked(source: Source) -> Source:
    """Refuses a model without a graph, or with names that are no text; warns about one from a newer ONNX."""
    proto = source.proto
    if not proto.HasField("graph"):
        raise (
            _not_onnx(proto.SerializeToString()[:16], source.name)
            if not proto.ir_version
            else ModelError(
                f"{source.name} holds no graph", hint="the file may be cut short: download or export it again"
            )
        )
    if not proto.opset_import and not proto.functions:
        raise ModelError(
            f"{source.name} does not say which operator set it uses (it has no opset_import)",
            hint="the file may be cut short: download or export it again",
        )
    check_names(proto, source.name)
    if proto.ir_version > onnx.IR_VERSION:
        warnings.warn(
            f"{source.name} has IR version {proto.ir_version}, newer than {onnx.IR_VERSION}, the newest known here; "
            "its new features are ignored",
            stacklevel=3,
        )
    return source
