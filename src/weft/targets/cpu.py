"""CPUs as targets: the one we run on, read from the system, and the x86-64 levels by name.

cpu()           this machine
cpu("avx2")     this machine held to AVX2 and FMA
parse_target("cpu -mattr=avx2 -cores=4")
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

from weft.native import _rt
from weft.support.arguments import check_text
from weft.support.errors import InputError
from weft.targets.cores import core_of
from weft.targets.target import PORTABLE, ROUNDING, Target

TARGETS: Final = "use cpu, or cpu -mattr=avx512|avx2|sse4"
TRIPLE: Final = "x86_64-unknown-linux-gnu"


@dataclass(frozen=True)
class Level:
    """An x86-64 level: LLVM's name for it, the features it needs beyond that name, and the shape of its vectors."""

    cpu: str
    features: tuple[str, ...]
    vector_bits: int
    vector_registers: int
    masked_memory: bool

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
    "avx512": Level("x86-64-v4", _AVX512, 512, 32, True),
    "avx2": Level("x86-64-v3", _AVX2, 256, 16, True),
    "sse4": Level("x86-64-v2", _SSE4, 128, 16, False),
}
"""The levels by name, the widest first."""

_OPTIONAL: Final = {
    "avx512_vnni": "avx512vnni", "avx512_bf16": "avx512bf16", "avx512vbmi": "avx512vbmi", "avx512_vbmi2": "avx512vbmi2",
    "avx512ifma": "avx512ifma", "avx512_fp16": "avx512fp16", "avx_vnni": "avxvnni",
}  # fmt: skip
"""What Linux calls a feature that goes beyond the levels, and what LLVM calls it."""
_NEEDS: Final = {"avxvnni": "avx2"}  # the others need avx512
_FLAG_OF: Final = {
    "sse3": "pni",
    "sse4.1": "sse4_1",
    "sse4.2": "sse4_2",
    "bmi": "bmi1",
    "lzcnt": "abm",
    "sahf": "lahf_lm",
}

_CORES: Final = re.compile("[1-9][0-9]{0,5}")
"""How many cores a target may be said to have, in ASCII's digits alone."""


@cache
def host() -> Target:
    """Returns this machine as a target, with the widest x86-64 level that it has."""
    return cpu()


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
    sizes = cache_sizes()
    core = core_of(_cpuinfo() if has_level(chosen, flags) else {"flags": " ".join(flags_of(chosen))})
    rate = 1 if not chosen.fma else core.wide_fma_per_cycle if chosen.vector_bits == 512 else 2
    return Target(
        name="cpu" if level is None else f"cpu -mattr={name}",
        triple=TRIPLE,
        cpu=chosen.cpu,
        tune=core.tune,
        features=tuple(sorted({*chosen.features, *_extra_features(name, flags)})),
        vector_bits=chosen.vector_bits,
        vector_registers=chosen.vector_registers,
        fma=chosen.fma,
        fma_per_cycle=rate,
        masked_memory=chosen.masked_memory,
        l1=sizes.get(1, 32 << 10),
        l2=sizes.get(2, 512 << 10),
        l3=min(sizes.get(3, 8 << 20), core.l3_share),
        cache_line=64,
        cores=cores or len(os.sched_getaffinity(0)),
        native=PORTABLE | ROUNDING | ({"fma"} if chosen.fma else frozenset()) | chosen.scaling,
        l2_speed=core.l2_speed,
        l3_speed=core.l3_speed,
        memory_speed=core.memory_speed,
        read_ahead=core.read_ahead,
        read_ahead_uses=core.read_ahead_uses,
    )


def parse_target(text: str) -> Target:
    """Returns the target that *text* describes: `cpu`, optionally with `-mattr=LEVEL` and `-cores=N`.

    Raises `InputError` for anything else.
    """
    kind, *options = check_text("target", text, TARGETS).split() or [""]
    if kind != "cpu":
        raise InputError(f"there is no target {kind!r}", hint=TARGETS)
    target = cpu()
    for option in options:
        key, _, value = option.partition("=")
        if key == "-mattr":
            target = replace(cpu(value), cores=target.cores)
        elif key == "-cores" and _CORES.fullmatch(value):
            target = replace(target, cores=int(value))
        else:
            raise InputError(f"target option {option!r} is not understood", hint="use -mattr=LEVEL or -cores=N")
    return target


def can_run(target: Target) -> bool:
    """Tells whether code for *target* runs on this machine."""
    return set(needed_flags(target)) <= host_flags()


def needed_flags(target: Target) -> tuple[str, ...]:
    """Returns Linux's names for the features that code for *target* needs of the processor."""
    return tuple([_linux_name(f.removeprefix("+")) for f in target.features])


def has_level(level: Level, flags: frozenset[str]) -> bool:
    """Tells whether a machine with Linux's CPU *flags* has *level*."""
    return flags.issuperset(flags_of(level))


def flags_of(level: Level) -> list[str]:
    """Returns Linux's names for the features that *level* needs of the processor."""
    return [_linux_name(f.removeprefix("+")) for f in level.features]


def _linux_name(feature: str) -> str:
    optional = {llvm: linux for linux, llvm in _OPTIONAL.items()}
    return _FLAG_OF.get(feature) or optional.get(feature, feature)


def _extra_features(level: str, flags: frozenset[str]) -> list[str]:
    present = [llvm for linux, llvm in _OPTIONAL.items() if linux in flags]
    return [f"+{f}" for f in present if level == "avx512" or _NEEDS.get(f) == level]


@cache
def host_flags() -> frozenset[str]:
    """Returns Linux's names for this processor's features, as the loader of saved models finds them."""
    return frozenset(_rt.features())


@cache
def _cpuinfo() -> dict[str, str]:
    """Returns what the processor tells of itself, by the names of the fields of /proc/cpuinfo."""
    vendor, family, model = _rt.processor()
    flags = " ".join(sorted(host_flags()))
    return {"vendor_id": vendor, "cpu family": str(family), "model": str(model), "flags": flags}


@cache
def cache_sizes() -> dict[int, int]:
    """Returns the bytes of each level of data cache that the first core sees, by level."""
    found = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        kind, level, size = [(folder / n).read_text(encoding="ascii").strip() for n in ("type", "level", "size")]
        if kind != "Instruction":
            found[int(level)] = int(size.rstrip("KM")) << (20 if size.endswith("M") else 10)
    return found
