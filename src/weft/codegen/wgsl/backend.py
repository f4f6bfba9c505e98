"""WGSL as a backend: source text of kernels, each of which is a module of the language together with the helpers."""

from __future__ import annotations

from typing import Final

from weft.codegen.c_family.source_backend import SourceBackend
from weft.codegen.wgsl.kernel_writer import KernelWriter
from weft.codegen.wgsl.statements import WGSL
from weft.codegen.wgsl.wgsl_helpers import helpers
from weft.codegen.wgsl.wgsl_kernel import define_kernel

BACKEND: Final = SourceBackend(
    name="wgsl",
    language="WGSL",
    define=lambda fn, target, needs: define_kernel(KernelWriter(target, fn.name, needs, WGSL), fn),
    whole=lambda joined: "\n".join([helpers(joined.helpers), *joined.texts]),
)
