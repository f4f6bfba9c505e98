"""Models of TensorFlow Lite of one operator each, for those that its converter does not write. Needs TensorFlow 2.21."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import flatbuffers
import numpy as np
from tensorflow.lite.python import schema_py_generated as schema


class Sparse:
    """A matrix as rows that are compressed, or as a row of compressed rows of blocks."""

    def __init__(self, matrix: Any, block: tuple[int, int] | None = None) -> None:
        self.matrix, self.block = matrix, block or (1, 1)
        rows, columns = (s // b for s, b in zip(matrix.shape, self.block, strict=True))
        parts = matrix.reshape(rows, self.block[0], columns, self.block[1]).transpose(0, 2, 1, 3)
        used = parts.any((2, 3))
        self.segments = np.concatenate([[0], used.sum(1).cumsum()])
        self.indices = np.nonzero(used)[1]
        self.values = parts[used].reshape(-1)

    def described(self) -> Any:
        """Returns what the schema says of it."""
        made = schema.SparsityParametersT()
        cut = [d for d in range(2) if self.block[d] > 1]
        made.traversalOrder = [0, 1, *range(2, 2 + len(cut))]
        made.blockMap = cut or None
        rows, columns = schema.DimensionMetadataT(), schema.DimensionMetadataT()
        rows.format, rows.denseSize = schema.DimensionType.DENSE, len(self.segments) - 1
        columns.format = schema.DimensionType.SPARSE_CSR
        columns.arraySegmentsType = schema.SparseIndexVector.Uint16Vector
        columns.arrayIndicesType = schema.SparseIndexVector.Uint8Vector
        columns.arraySegments, columns.arrayIndices = schema.Uint16VectorT(), schema.Uint8VectorT()
        columns.arraySegments.values, columns.arrayIndices.values = self.segments.tolist(), self.indices.tolist()
        made.dimMetadata = [rows, columns]
        for size in [self.block[d] for d in cut]:
            inner = schema.DimensionMetadataT()
            inner.format, inner.denseSize = schema.DimensionType.DENSE, size
            made.dimMetadata.append(inner)
        return made


@dataclass(frozen=True)
class Quantised:
    """A tensor whose integers stand for `(q - zero) * scale`, with one scale, or one for each index of *axis*."""

    what: Any
    scale: Any
    zero: Any = 0
    axis: int = 0


KINDS = {
    "f": schema.TensorType.FLOAT32,
    "i": schema.TensorType.INT32,
    "b": schema.TensorType.INT8,
    "B": schema.TensorType.UINT8,
    "h": schema.TensorType.INT16,
    "e": schema.TensorType.FLOAT16,
    "F": schema.TensorType.COMPLEX64,
}


VERSIONS = {"BROADCAST_TO": 2}
"""The least version of an operator that the interpreter has, where it is not the first."""


def one_operator(kind: str, options: Any, tensors: Mapping[str, Any], results: int, state: str = "") -> bytes:
    """Returns a model of an operator, whose *tensors* are its inputs and then its *results*, by name.

    A tensor is a shape of floats; the letter of a type, and a shape; or, if it is constant, an array; or one of these as
    `Quantised`. Inputs are the tensors without elements that no operator makes, but for those of a *state*.
    """
    return model_of([(kind, options, list(tensors)[:-results], list(tensors)[-results:])], tensors, state)


def model_of(
    operators: list[tuple[str, Any, list[str], list[str]]], tensors: Mapping[str, Any], state: str = ""
) -> bytes:
    """Returns a model of *operators*, each with its options and the names of its inputs and results, "" for none."""
    model, graph = schema.ModelT(), schema.SubGraphT()
    model.version, model.description, model.buffers = 3, operators[0][0], [schema.BufferT()]
    names = list(tensors)
    graph.tensors = [_tensor(n, what, n in state.split(), model.buffers) for n, what in tensors.items()]
    model.operatorCodes, graph.operators = [], []
    for k, (kind, options, inputs, outputs) in enumerate(operators):
        code, operator = schema.OperatorCodeT(), schema.OperatorT()
        code.builtinCode = getattr(schema.BuiltinOperator, kind)
        code.deprecatedBuiltinCode = min(code.builtinCode, 127)
        code.version = VERSIONS.get(kind, 1)
        operator.opcodeIndex = k
        operator.inputs, operator.outputs = (
            [names.index(n) if n else -1 for n in given] for given in (inputs, outputs)
        )
        if options is not None:
            operator.builtinOptionsType = getattr(schema.BuiltinOptions, type(options).__name__.removesuffix("T"))
            operator.builtinOptions = options
        model.operatorCodes.append(code)
        graph.operators.append(operator)
    made = {n for *_, outputs in operators for n in outputs} | set(state.split())
    graph.inputs = [
        k for k, (n, what) in enumerate(tensors.items()) if n not in made and isinstance(_inside(what), tuple)
    ]
    graph.outputs = [names.index(n) for n in operators[-1][3]]
    model.subgraphs = [graph]
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _inside(what: Any) -> Any:
    return what.what if isinstance(what, Quantised) else what


def _tensor(name: str, what: Any, is_state: bool, buffers: list[Any]) -> Any:
    if isinstance(what, Quantised):
        tensor = _tensor(name, what.what, is_state, buffers)
        tensor.quantization = schema.QuantizationParametersT()
        tensor.quantization.scale, tensor.quantization.zeroPoint = (
            np.atleast_1d(v).tolist() for v in (what.scale, what.zero)
        )
        tensor.quantization.quantizedDimension = what.axis
        return tensor
    tensor = schema.TensorT()
    tensor.name, tensor.isVariable, tensor.buffer = name, is_state, 0
    if isinstance(what, tuple):
        letter, shape = what if isinstance(what[0], str) else ("f", what)
        tensor.type, tensor.shape = KINDS[letter], list(shape)
        return tensor
    if isinstance(what, Sparse):
        tensor.sparsity, tensor.shape, array = what.described(), list(what.matrix.shape), what.values
    else:
        tensor.shape, array = list(what.shape), what
    array = array.astype(np.float32) if array.dtype == np.float64 else array
    array = array.astype(np.int32) if array.dtype == np.int64 else array
    held = schema.BufferT()
    held.data = list(array.tobytes())
    tensor.type, tensor.buffer = KINDS[array.dtype.char], len(buffers)
    buffers.append(held)
    return tensor
