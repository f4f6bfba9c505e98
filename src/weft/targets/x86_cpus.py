"""x86-64 processors as targets: this machine, read from the system, and the levels by name.

cpu()           this machine
cpu("avx2")     this machine held to AVX2 and FMA
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from weft.support.errors import InputError
from weft.targets.cores import core_of
from weft.targets.records import Isa
from weft.targets.scopes import CPU_SCOPES, TILE
from weft.targets.target import EXTREMA, PORTABLE, ROUNDING, Target
from weft.targets.this_machine import cache_sizes, cpuinfo, host_flags, usable_cores

TRIPLE: Final = "x86_64-unknown-linux-gnu"


@dataclass(frozen=True)
class Level:
    """An x86-64 level: LLVM's name for it, the features it needs beyond that name, and the shape of its vectors."""

    cpu: str
    features: tuple[str, ...]
    vector_bits: int
    vector_registers: int
    masked_memory: bool
    mask_registers: bool = False

    @property
    def fma(self) -> bool:
        """Whether the level multiplies and adds in one instruction."""
        return "+fma" in self.features

    @property
    def scaling(self) -> frozenset[str]:
        """`ldexp`, if the level multiplies vectors by powers of two in one instruction."""
        return frozenset({"ldexp"} if "+avx512f" in self.features else ())


_SSE4: Final = ("+cx16", "+popcnt", "+sahf", "+sse3", "+sse4.1", "+sse4.2", "+ssse3")
_AVX2: Final = (*_SSE4, "+avx", "+avx2", "+bmi", "+bmi2", "+f16c", "+fma", "+lzcnt", "+movbe")
_AVX512: Final = (*_AVX2, "+avx512bw", "+avx512cd", "+avx512dq", "+avx512f", "+avx512vl")
LEVELS: Final = {
    "avx512": Level("x86-64-v4", _AVX512, 512, 32, masked_memory=True, mask_registers=True),
    "avx2": Level("x86-64-v3", _AVX2, 256, 16, masked_memory=True),
    "sse4": Level("x86-64-v2", _SSE4, 128, 16, masked_memory=False),
}
"""The levels by name, the widest first."""

_OPTIONAL: Final = {
    "avx512_vnni": "avx512vnni",
    "avx512_bf16": "avx512bf16",
    "avx512vbmi": "avx512vbmi",
    "avx512_vbmi2": "avx512vbmi2",
    "avx512ifma": "avx512ifma",
    "avx512_fp16": "avx512fp16",
    "avx_vnni": "avxvnni",
    "amx_tile": "amx-tile",
    "amx_bf16": "amx-bf16",
    "amx_int8": "amx-int8",
}
"""Linux's and LLVM's names of features that go beyond the levels."""
_NEEDS: Final = {"avxvnni": "avx2"}  # the others need avx512
_FLAG_OF: Final = {
    "sse3": "pni",
    "sse4.1": "sse4_1",
    "sse4.2": "sse4_2",
    "bmi": "bmi1",
    "lzcnt": "abm",
    "sahf": "lahf_lm",
}


@cache
def cpu(level: str | None = None, cores: int | None = None) -> Target:
    """Returns this machine held to *level* ("avx512", "avx2", "sse4"); by default the widest one it has.

    A level that the machine lacks can be compiled for, not run; it is given the core nearest to its features, as this machine's
    may not even know its registers. Raises `InputError` for an unknown level.
    """
    flags = host_flags()
    name = level or next((n for n, x in LEVELS.items() if has_level(x, flags)), "sse4")
    if name not in LEVELS:
        raise InputError(f"there is no CPU level {name!r}", hint=f"use one of {', '.join(LEVELS)}")
    chosen = LEVELS[name]
    known = core_of(cpuinfo() if has_level(chosen, flags) else {"flags": " ".join(flags_of(chosen))})
    features = tuple(sorted({*chosen.features, *_extra_features(name, flags)}))
    return Target(
        name="cpu" if level is None else f"cpu -mattr={name}",
        kind="cpu",
        backend="llvm",
        isa=Isa(
            triple=TRIPLE,
            cpu=chosen.cpu,
            features=features,
            vector_bits=chosen.vector_bits,
            vector_registers=chosen.vector_registers,
            fma=chosen.fma,
            masked_memory=chosen.masked_memory,
            mask_registers=chosen.mask_registers,
            native=PORTABLE | ROUNDING | EXTREMA | ({"fma"} if chosen.fma else frozenset()) | chosen.scaling,
        ),
        core=known.core(chosen.vector_bits, fma=chosen.fma),
        caches=known.caches(cache_sizes()),
        cores=cores or usable_cores(),
        scopes=(*CPU_SCOPES, TILE) if "+amx-tile" in features else CPU_SCOPES,
    )


def has_level(level: Level, flags: frozenset[str]) -> bool:
    """Tells whether a machine with Linux's CPU *flags* has *level*."""
    return flags.issuperset(flags_of(level))


def flags_of(level: Level) -> list[str]:
    """Returns Linux's names for the features that *level* needs of the processor."""
    return [linux_name(f.removeprefix("+")) for f in level.features]


def linux_name(feature: str) -> str:
    """Returns Linux's name of a feature that LLVM calls *feature*."""
    optional = {llvm: linux for linux, llvm in _OPTIONAL.items()}
    return _FLAG_OF.get(feature) or optional.get(feature, feature)


def _extra_features(level: str, flags: frozenset[str]) -> list[str]:
    present = [llvm for linux, llvm in _OPTIONAL.items() if linux in flags]
    return [f"+{f}" for f in present if level == "avx512" or _NEEDS.get(f) == level]
