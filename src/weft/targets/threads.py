"""Machines that run grids of threads, and a generic one of them: facts only, to schedule for, lower for and interpret."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from weft.targets.scopes import GLOBAL, LOCAL, REGISTER, SHARED, WARP
from weft.targets.target import PORTABLE, ROUNDING, Target, ThreadFacts

GENERIC_THREADS: Final = Target(
    name="threads", triple="", cpu="", tune="generic", features=(), vector_bits=32, vector_registers=255, fma=True,
    fma_per_cycle=1, masked_memory=False, l1=128 << 10, l2=4 << 20, l3=4 << 20, cache_line=128, cores=1,
    native=PORTABLE | ROUNDING,
    scopes=(GLOBAL, replace(SHARED, bytes=48 << 10), WARP, replace(LOCAL, bytes=512 << 10), replace(REGISTER, bytes=1020)),
    threads=ThreadFacts(),
)  # fmt: skip
"""The machine of the CUDA programming model as its guide describes it, without a backend: 32 threads a warp, 1024 a block."""

WITHOUT_SHUFFLES: Final = replace(
    GENERIC_THREADS, name="threads-without-shuffles", scopes=tuple([s for s in GENERIC_THREADS.scopes if s is not WARP])
)
"""The same machine, whose threads exchange values through shared memory only."""
