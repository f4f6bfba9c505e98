"""What is known of x86 cores beyond the instructions they have: their widths, and how fast they read.

The system gives the sizes of caches, not their speeds. These are what one core reads of data that another level holds, measured
with sequential reads in huge pages; a rule that chooses between more arithmetic and more memory needs them to a factor of two.

Every core gets the name of one whose timing LLVM knows: its own where a table has it, else that of the newest known core of its
maker whose features it has. LLVM's "generic" is no such name: told nothing of a core, it lets the widest register tiles of AVX2
spill. For the same reason the tables name only cores that have AVX2; older ones are found by their features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True)
class Core:
    """A kind of core: LLVM's name for its timing, the 512-bit multiply-adds of a cycle, and what it reads (`Target`)."""

    tune: str
    wide_fma_per_cycle: int = 2
    l2_speed: float = 48.0
    l3_speed: float = 24.0
    memory_speed: float = 8.0
    read_ahead: int = 4096
    read_ahead_uses: int = 4
    l3_share: int = 1 << 40
    """Bytes of the third level that a program can count on; more cores than the system shows may share it."""


_Newest = Sequence[tuple[str, str]]
"""Cores by a flag of Linux that came with them, the newest first; the last one's is empty."""

_ZEN3: Final = Core("znver3", 1)
_ZEN4: Final = Core("znver4", 1)
_AMD: Final = [
    (23, range(0x30), Core("znver1", 1)),
    (23, range(0x30, 0x100), Core("znver2", 1)),
    (25, range(0x10), _ZEN3),
    (25, range(0x10, 0x20), _ZEN4),
    (25, range(0x20, 0x60), _ZEN3),
    (25, range(0x60, 0x80), _ZEN4),
    (25, range(0xA0, 0xB0), _ZEN4),
    (26, range(0x100), Core("znver5")),
]
"""By family and model. Before Zen 5 a multiply-add of 512 bits takes both units."""

_AMD_BY_FLAG: Final[_Newest] = [
    ("avx512_vp2intersect", "znver5"), ("avx512f", "znver4"), ("vaes", "znver3"), ("rdpid", "znver2"), ("avx2", "znver1"),
    ("fma", "bdver2"), ("avx", "bdver1"), ("", "barcelona"),
]  # fmt: skip
_WIDE_AMD: Final = 26
"""The first family of AMD whose multiply-adds of 512 bits take one unit each."""

_MESH: Final = Core("", l3_speed=10.0, memory_speed=4.5, read_ahead_uses=1, l3_share=64 << 20)
"""Intel's servers: a third level spread over a mesh, far from each core, so that reads must be under way early."""

_INTEL_SERVERS: Final = {
    85: "skylake-avx512",
    106: "icelake-server",
    108: "icelake-server",
    143: "sapphirerapids",
    173: "graniterapids",
    174: "graniterapids",
    207: "emeraldrapids",
}
"""LLVM's names, by model of family 6."""

_INTEL_SERVERS_BY_FLAG: Final[_Newest] = [
    ("amx_fp16", "graniterapids"), ("amx_tile", "sapphirerapids"), ("avx512_vbmi2", "icelake-server"),
    ("avx512_vnni", "cascadelake"), ("", "skylake-avx512"),
]  # fmt: skip

_INTEL_CLIENTS: Final = {
    60: "haswell", 69: "haswell", 70: "haswell", 61: "broadwell", 71: "broadwell", 78: "skylake", 94: "skylake",
    142: "skylake", 158: "skylake", 165: "skylake", 166: "skylake", 125: "icelake-client", 126: "icelake-client",
    140: "tigerlake", 141: "tigerlake", 167: "rocketlake", 151: "alderlake", 154: "alderlake", 183: "raptorlake",
    186: "raptorlake", 191: "raptorlake",
}  # fmt: skip
"""Those that have multiply-adds of 512 bits have one unit for them."""

_INTEL_CLIENTS_BY_FLAG: Final[_Newest] = [
    ("avx512_vbmi2", "icelake-client"), ("avx512f", "skylake-avx512"), ("avx_vnni", "alderlake"), ("avx2", "haswell"),
    ("avx", "sandybridge"), ("", "nehalem"),
]  # fmt: skip

_ANY_BY_FLAG: Final[_Newest] = [
    *_INTEL_SERVERS_BY_FLAG[:-1],
    ("avx512f", "skylake-avx512"),
    *_INTEL_CLIENTS_BY_FLAG[-3:],
]
"""Cores of a maker that is not known, or that a virtual machine does not tell."""


def core_of(cpuinfo: Mapping[str, str]) -> Core:
    """Returns the core that the fields of /proc/cpuinfo describe; the nearest one known if it is in no table."""
    flags = frozenset(cpuinfo.get("flags", "").split())
    family, model = (int(cpuinfo.get(k, "0")) for k in ("cpu family", "model"))
    vendor = cpuinfo.get("vendor_id")
    if vendor == "AuthenticAMD":
        return _amd(family, model, flags)
    if vendor == "GenuineIntel":
        return _intel(model if family == 6 else -1, flags)
    return Core(_newest(_ANY_BY_FLAG, flags))


def _amd(family: int, model: int, flags: frozenset[str]) -> Core:
    for known, models, core in _AMD:
        if family == known and model in models:
            return core
    return Core(_newest(_AMD_BY_FLAG, flags), 2 if family >= _WIDE_AMD else 1)


def _intel(model: int, flags: frozenset[str]) -> Core:
    """A rented machine with AVX-512 is a server, whatever model it is made to show."""
    if model in _INTEL_SERVERS:
        return replace(_MESH, tune=_INTEL_SERVERS[model])
    if "amx_tile" in flags or {"avx512f", "hypervisor"} <= flags:
        return replace(_MESH, tune=_newest(_INTEL_SERVERS_BY_FLAG, flags))
    return Core(_INTEL_CLIENTS.get(model) or _newest(_INTEL_CLIENTS_BY_FLAG, flags), 1)


def _newest(cores: _Newest, flags: frozenset[str]) -> str:
    return next(name for flag, name in cores if not flag or flag in flags)
