"""NVIDIA's GPUs by architecture, as facts: the target `cuda`, and `cuda -arch=sm_90`.

The figures are those of NVIDIA's "CUDA C++ Programming Guide" (13.0, appendix "Compute Capabilities") and of the white papers of
A100, H100 and B200 for the second level of cache; none was measured here. Products of 16 bits by warps are as many times as fast
as multiply-adds of float32 as they say: 312 and 19.5 TFLOP/s for an A100, 990 and 67 for an H100; tf32 takes twice as long. A
block has at most 48 KiB of static memory on all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from weft.runtime.devices import compute_capability
from weft.support.errors import InputError
from weft.targets.grid_machines import WITHOUT_SHUFFLES
from weft.targets.records import RESERVED_BYTES, Caches, Grid, Isa
from weft.targets.scopes import DYNAMIC, FRAGMENT, GLOBAL, LOCAL, REGISTER, SHARED, SWIZZLED, WARP
from weft.targets.target import EXPONENTIALS, EXTREMA, PORTABLE, ROUNDING, TF32, Target

AMPERE: Final = ("+mma_f16", "+mma_bf16", "+mma_tf32", "+async_copy")
BLACKWELL: Final = (*AMPERE, "+dependent_launch")
HOPPER: Final = (*BLACKWELL, "+wgmma")
"""The instructions by NVIDIA's names of generations: products by warps, copies that run ahead, kernels that start while others
end, products by groups of 4 warps."""


@dataclass(frozen=True)
class Architecture:
    """The caches of an architecture in bytes: of a multiprocessor, shared memory included, and of the device.

    Its largest usual device has so many *multiprocessors*, each of which runs so many *threads* that share so many bytes; a block
    has up to all of those but `RESERVED_BYTES` where a launch asks for them. *features* are its instructions, and *native* pure
    functions that have one, beside those of all GPUs.
    """

    l1: int
    l2: int
    multiprocessors: int
    threads: int
    shared: int
    lanes: int = 128
    features: tuple[str, ...] = AMPERE
    native: frozenset[str] = frozenset()


ARCHITECTURES: Final = {
    "sm_80": Architecture(192 << 10, 40 << 20, 108, 2048, 164 << 10, lanes=64),
    "sm_86": Architecture(128 << 10, 6 << 20, 84, 1536, 100 << 10),
    "sm_89": Architecture(128 << 10, 72 << 20, 128, 1536, 100 << 10),
    "sm_90": Architecture(256 << 10, 50 << 20, 132, 2048, 228 << 10, features=HOPPER, native=TF32),
    "sm_100": Architecture(256 << 10, 126 << 20, 148, 2048, 228 << 10, features=BLACKWELL, native=TF32),
    "sm_120": Architecture(128 << 10, 96 << 20, 170, 1536, 100 << 10, features=BLACKWELL, native=TF32),
}
"""Architectures by NVRTC's names."""

LISTED: Final = ("sm_80", "sm_90", "sm_100")
"""The architectures of data centres, which `weft targets` lists."""

OLDEST: Final = "sm_80"
"""The least that kernels ask for: its conversions of 16 bits, and its products of matrices."""


def cuda(arch: str | None = None) -> Target:
    """Returns the target of an architecture: of this machine's device, or the oldest where there is none, without *arch*.

    Raises `InputError` for an architecture that is not in `ARCHITECTURES`.
    """
    name = arch or _here()
    found = ARCHITECTURES.get(name)
    if found is None:
        raise InputError(f"there is no architecture {name!r} of CUDA", hint=f"use one of {', '.join(ARCHITECTURES)}")
    return replace(
        WITHOUT_SHUFFLES,
        name="cuda",
        backend="cuda",
        isa=Isa(
            cpu=name,
            features=found.features,
            vector_bits=32,
            vector_registers=255,
            fma=True,
            native=PORTABLE | ROUNDING | EXPONENTIALS | EXTREMA | found.native,
            language="cuda",
        ),
        caches=Caches(l1=found.l1, l2=found.l2, l3=found.l2, line=128),
        scopes=(
            GLOBAL,
            replace(SHARED, bytes=48 << 10),
            replace(SWIZZLED, bytes=found.shared - RESERVED_BYTES),
            replace(DYNAMIC, bytes=found.shared - RESERVED_BYTES),
            FRAGMENT,
            WARP,
            replace(LOCAL, bytes=512 << 10),
            replace(REGISTER, bytes=1020),
        ),
        grid=Grid(
            atomic_bits=64,
            multiprocessors=found.multiprocessors,
            threads=found.threads,
            shared_bytes=found.shared,
            lanes=found.lanes,
        ),
    )


def _here() -> str:
    """Returns the listed architecture whose code runs on this machine's device: one of its generation, not newer than it."""
    major, minor = compute_capability() or (0, 0)
    known = {_numbers(name): name for name in ARCHITECTURES}
    return next((known[n] for n in sorted(known, reverse=True) if n[0] == major and n[1] <= minor), OLDEST)


def _numbers(name: str) -> tuple[int, int]:
    digits = name.removeprefix("sm_")
    return int(digits[:-1]), int(digits[-1])
