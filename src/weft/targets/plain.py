"""Generic machines other than x86-64: only the features that every processor of an architecture has."""

from __future__ import annotations

from typing import Final

from weft.targets.records import Caches, Core, Isa
from weft.targets.target import EXTREMA, PORTABLE, ROUNDING, Target

_AARCH64: Final = Target(
    name="aarch64",
    kind="cpu",
    backend="llvm",
    isa=Isa(
        "aarch64-unknown-linux-gnu",
        "generic",
        ("+neon",),
        vector_bits=128,
        vector_registers=32,
        fma=True,
        native=PORTABLE | ROUNDING | EXTREMA | {"fma"},
    ),
    core=Core(fma_per_cycle=2),
    caches=Caches(l1=32 << 10, l2=512 << 10, l3=2 << 20),
)
_RISCV64: Final = Target(
    name="riscv64",
    kind="cpu",
    backend="llvm",
    isa=Isa(
        "riscv64-unknown-linux-gnu",
        "generic-rv64",
        ("+a", "+c", "+d", "+f", "+m"),
        vector_bits=64,
        vector_registers=32,
        fma=True,
        native=PORTABLE | EXTREMA | {"fma"},
    ),
    caches=Caches(l1=32 << 10, l2=512 << 10, l3=2 << 20),
)

PLAIN: Final = {t.isa.machine: t for t in (_AARCH64, _RISCV64)}
"""Targets by the first word of the triple, with the caches of small boards: code for them is also right for larger ones."""

BASELINE: Final = {"aarch64": frozenset({"+neon"}), "riscv64": frozenset({"+a", "+c", "+d", "+f", "+m"})}
"""LLVM's features that every processor of an architecture has that runs Linux, so that `can_run` need not test them."""

ARM_FLAGS: Final = {
    "neon": "asimd",
    "dotprod": "asimddp",
    "fullfp16": "asimdhp",
    "rdm": "asimdrdm",
    "lse": "atomics",
    "fp16fml": "asimdfhm",
}
"""Linux's names of features that LLVM names differently, on AArch64."""
