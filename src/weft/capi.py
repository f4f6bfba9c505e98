"""Weft's errors by the names of ONNX Runtime's, for programs that catch these.

try:
    session.run(None, feed)
except weft.capi.InvalidArgument:
    ...

They stand in `onnxruntime.capi.onnxruntime_pybind11_state` there.
"""

from weft.support.errors import (
    ArtifactError,
    DeviceError,
    InputError,
    MissingFile,
    ModelError,
    RuntimeFailure,
    ToolchainError,
    UnsupportedOperators,
    WeftError,
)

Fail = WeftError
InvalidArgument = InputError
InvalidGraph = InvalidProtobuf = ModelError
NotImplemented = UnsupportedOperators
NoSuchFile = MissingFile
NoModel = ModelLoaded = WeftError
RuntimeException = RuntimeFailure
EPFail = DeviceError
EngineError = ToolchainError
ModelRequiresCompilation = ArtifactError

__all__ = [
    "EPFail",
    "EngineError",
    "Fail",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "ModelLoaded",
    "ModelRequiresCompilation",
    "NoModel",
    "NoSuchFile",
    "NotImplemented",
    "RuntimeException",
]
