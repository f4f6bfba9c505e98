"""ONNX models: `from_onnx` imports one, `files_of` lists the files that it consists of."""

from weft.frontends.onnx.importer import from_onnx
from weft.frontends.onnx.read import files_of

__all__ = ["files_of", "from_onnx"]
