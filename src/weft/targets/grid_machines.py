"""Machines that run grids of threads, and a generic one of them: facts only, to schedule for, lower for and interpret."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from weft.targets.records import Caches, Grid, Isa
from weft.targets.scopes import GLOBAL, LOCAL, REGISTER, SHARED, WARP
from weft.targets.target import PORTABLE, REASSOCIATED, ROUNDING, Target

GENERIC_THREADS: Final = Target(
    name="threads",
    kind="grid",
    backend="",
    isa=Isa(vector_bits=32, vector_registers=255, fma=True, native=PORTABLE | ROUNDING),
    caches=Caches(l1=128 << 10, l2=4 << 20, l3=4 << 20, line=128),
    scopes=(
        GLOBAL,
        replace(SHARED, bytes=48 << 10),
        WARP,
        replace(LOCAL, bytes=512 << 10),
        replace(REGISTER, bytes=1020),
    ),
    grid=Grid(),
)
"""The machine of the CUDA programming model as its guide describes it, without a backend: 32 threads a warp, 1024 a block."""

WITHOUT_SHUFFLES: Final = replace(
    GENERIC_THREADS, name="threads-without-shuffles", scopes=tuple([s for s in GENERIC_THREADS.scopes if s is not WARP])
)
"""The same machine, whose threads exchange values through shared memory only."""

OPENCL: Final = WITHOUT_SHUFFLES.having(
    name="opencl",
    backend="opencl",
    isa=Isa(vector_bits=32, vector_registers=255, fma=True, native=PORTABLE | ROUNDING, language="opencl"),
    scopes=(GLOBAL, replace(SHARED, bytes=32 << 10), replace(LOCAL, bytes=512 << 10), replace(REGISTER, bytes=1020)),
    grid=Grid(block=256, index_bits=32),
)
"""Any device with OpenCL 1.2: the least that all of them have, so 256 threads a block and 32 KiB of shared memory."""

WEBGPU: Final = OPENCL.having(
    name="webgpu",
    backend="wgsl",
    isa=replace(
        OPENCL.isa,
        language="wgsl",
        native=PORTABLE | ROUNDING | REASSOCIATED,
        missing_types=frozenset({"f64"}),
        lane_conditions=False,
    ),
    grid=Grid(block=256, index_bits=32, buffer_bytes=128 << 20, buffers=30),
)
"""Any device with WebGPU, by way of Vulkan, Metal or Direct3D 12: the limits that the standard gives to all.

But for the buffers of a kernel, of which the standard's eight are too few for fused operators: GPUs have Metal's 31, less one.
"""

METAL: Final = OPENCL.having(
    name="metal",
    backend="metal",
    isa=replace(
        OPENCL.isa,
        features=("+mma_f16", "+mma_bf16", "+mma_f32"),
        language="metal",
        missing_types=frozenset({"f64"}),
    ),
    scopes=(*OPENCL.scopes, WARP),
    grid=Grid(block=1024, index_bits=32, buffers=30, products=2.0),
)
"""Apple's GPUs with Metal 2.4, by its "Metal Feature Set Tables": 32 threads a simdgroup, which exchange registers and multiply
matrices; 31 buffers, one of them for numbers. How fast the products are Apple does not say: of float32 they are taken to be no
faster than its multiply-adds, and save reading shared memory."""
