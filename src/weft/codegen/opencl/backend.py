"""OpenCL C as a backend: source text of kernels, which the device's driver compiles when a model is loaded."""

from __future__ import annotations

from typing import Final

from weft.codegen.c_family.helpers import helpers
from weft.codegen.c_family.source_backend import SourceBackend
from weft.codegen.c_family.writer import Writer
from weft.codegen.opencl.kernel_text import define_kernel
from weft.codegen.opencl.opencl_head import HEAD
from weft.codegen.opencl.opencl_helpers import OWN_HELPERS
from weft.codegen.opencl.statements import OPENCL

BACKEND: Final = SourceBackend(
    name="opencl",
    language="OpenCL C",
    define=lambda fn, target, needs: define_kernel(Writer(target, fn.name, needs, OPENCL), fn),
    whole=lambda joined: "\n".join([HEAD, helpers(joined.helpers, OWN_HELPERS), *joined.texts]),
)
