"""Facts about x86 cores beyond their instruction sets: how fast they compute, and how fast they read.

The system gives the sizes of caches, not their speeds. These are the rates at which one core reads data from each level, measured
with sequential reads in huge pages; a rule that chooses between more arithmetic and more memory needs them to a factor of two.
Each row says in `source` where its figures come from: the machine, the date and the command, or the text that has them. Only
processors that were measured have a row, and servers with the same mesh; other relatives differ too much: the second level of
Zen 3 gives two thirds of the bandwidth of Zen 4's. A processor in no row is measured (`driver.calibrate`), and its facts are kept
in `MEASURED`; until then it has `UNMEASURED`, with which nothing but the measuring itself is compiled.

Every core gets the name of one whose timing LLVM knows: its own where a table has it, else that of the newest known core of its
maker whose features it has. LLVM's "generic" is no such name: told nothing of a core, it lets the widest register tiles of AVX2
spill. For the same reason the tables name only cores that have AVX2; older ones are found by their features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from weft.targets.records import Caches, Core

WIDE: Final = 512
"""Bits of the widest vectors, of which some cores multiply one where they multiply two of half the width."""

_SPEEDS: Final = "Zen 4 virtual machine, 2026-11-21, weft bench --peak (docs/design/0014)"
_PORTS: Final = "Agner Fog, Instruction tables and The microarchitecture of Intel, AMD and VIA CPUs, 2025"
_ZEN4_SOURCE: Final = f"speeds: {_SPEEDS}; ports and latencies: {_PORTS}"
_ZEN3_SOURCE: Final = (
    "EPYC 7003 virtual machine, 2026-11-25 and 28, weft doctor --calibrate; read_ahead_uses and scattered_part: kernels timed"
    f" in turns (docs/design/0014); latencies: {_PORTS}"
)
_MESH_SOURCE: Final = (
    "Emerald Rapids virtual machine, 2026-11-21 (docs/design/0013, 0025), bf16 2026-11-24 (benchmarks/peak.c);"
    f" ports and latencies: {_PORTS}"
)


@dataclass(frozen=True)
class KnownCore:
    """A kind of core: the fields of its `records.Core` and `records.Caches`, and the *source* of the figures.

    A multiply-add of 512 bits may take both units: `wide_fma_per_cycle` are those of a cycle, where it has such, and
    `wide_broadcast_slowdown` is the `broadcast_slowdown` of these vectors. A program can count on `l3_share` bytes of the third
    level; more cores than the system shows may share it.
    """

    tune: str
    source: str
    fma_per_cycle: int = 2
    wide_fma_per_cycle: int = 2
    wide_broadcast_slowdown: float = 1.5
    fma_latency: int = 4
    loads_per_cycle: float = 2
    forwarding_latency: int = 5
    issue_width: int = 6
    decoded_instructions: int = 4000
    decode_rate: float = 2.0
    bf16_dot_cycles: float = 1.0
    l2_speed: float = 48.0
    scattered_part: float = 0.3
    l3_speed: float = 24.0
    memory_speed: float = 8.0
    read_ahead: int = 4096
    read_ahead_uses: int = 4
    fork_cycles: int = 2048
    wake_cycles: int = 8192
    l3_share: int = 1 << 40

    def core(self, vector_bits: int, *, fma: bool) -> Core:
        """Returns the core held to vectors of *vector_bits* bits, with or without multiply-adds in one instruction."""
        wide = vector_bits == WIDE
        return Core(
            tune=self.tune,
            fma_per_cycle=1 if not fma else self.wide_fma_per_cycle if wide else self.fma_per_cycle,
            fma_latency=self.fma_latency,
            loads_per_cycle=self.loads_per_cycle,
            forwarding_latency=self.forwarding_latency,
            issue_width=self.issue_width,
            decoded_instructions=self.decoded_instructions,
            decode_rate=self.decode_rate,
            half_rate_wide=wide and self.wide_fma_per_cycle < self.fma_per_cycle,
            broadcast_slowdown=self.wide_broadcast_slowdown if wide else 1.0,
            bf16_dot_cycles=self.bf16_dot_cycles,
            read_ahead=self.read_ahead,
            read_ahead_uses=self.read_ahead_uses,
            fork_cycles=self.fork_cycles,
            wake_cycles=self.wake_cycles,
        )

    def caches(self, sizes: Mapping[int, int]) -> Caches:
        """Returns the caches of a machine whose levels have *sizes* bytes."""
        return Caches(
            l1=sizes.get(1, 32 << 10),
            l2=sizes.get(2, 512 << 10),
            l3=min(sizes.get(3, 8 << 20), self.l3_share),
            line=64,
            page=4096,
            set_period=4096,
            l2_speed=self.l2_speed,
            scattered_part=self.scattered_part,
            l3_speed=self.l3_speed,
            memory_speed=self.memory_speed,
        )


UNMEASURED: Final = KnownCore("", f"not measured; {_PORTS}")
"""A processor in no table whose facts were not measured yet."""

MEASURED: Final[dict[str, KnownCore]] = {}
"""The facts of processors in no table that were measured, by `processor_key`; see `registry.use_measured`."""

_Newest = Sequence[tuple[str, str]]
"""Cores by a flag of Linux that came with them, the newest first; the last one's is empty."""

_ZEN4: Final = KnownCore("znver4", _ZEN4_SOURCE, wide_fma_per_cycle=1, wide_broadcast_slowdown=1.0)
"""A multiply-add of 512 bits takes both units."""
_ZEN3: Final = KnownCore(
    "znver3",
    _ZEN3_SOURCE,
    loads_per_cycle=1.5,
    forwarding_latency=8,
    l2_speed=32.0,
    scattered_part=0.45,
    memory_speed=6.0,
    read_ahead_uses=1 << 20,
    l3_share=8 << 20,
)
_AMD: Final = [
    (25, range(0x10), _ZEN3),
    (25, range(0x10, 0x20), _ZEN4),
    (25, range(0xA0, 0xB0), _ZEN4),
]
"""Servers, by family and model."""

_AMD_NAMES: Final = [
    (23, range(0x30), "znver1"),
    (23, range(0x30, 0x100), "znver2"),
    (25, range(0x20, 0x60), "znver3"),
    (25, range(0x60, 0x80), "znver4"),
    (26, range(0x100), "znver5"),
]
"""LLVM's names of processors that are to be measured, by family and model."""

_AMD_BY_FLAG: Final[_Newest] = [
    ("avx512_vp2intersect", "znver5"),
    ("avx512f", "znver4"),
    ("vaes", "znver3"),
    ("rdpid", "znver2"),
    ("avx2", "znver1"),
    ("fma", "bdver2"),
    ("avx", "bdver1"),
    ("", "barcelona"),
]
_MESH: Final = KnownCore(
    "",
    _MESH_SOURCE,
    bf16_dot_cycles=4.0,
    scattered_part=1.0,
    l3_speed=10.0,
    memory_speed=4.5,
    read_ahead_uses=1,
    l3_share=64 << 20,
)
"""Intel's servers: a third level spread over a mesh, far from each core, so that reads must be under way early. Reads of pieces
of rows were not measured by themselves; products of them were, in tiles that need all of the second level's speed."""

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
    ("amx_fp16", "graniterapids"),
    ("amx_tile", "sapphirerapids"),
    ("avx512_vbmi2", "icelake-server"),
    ("avx512_vnni", "cascadelake"),
    ("", "skylake-avx512"),
]

_INTEL_CLIENTS: Final = {
    60: "haswell",
    69: "haswell",
    70: "haswell",
    61: "broadwell",
    71: "broadwell",
    78: "skylake",
    94: "skylake",
    142: "skylake",
    158: "skylake",
    165: "skylake",
    166: "skylake",
    125: "icelake-client",
    126: "icelake-client",
    140: "tigerlake",
    141: "tigerlake",
    167: "rocketlake",
    151: "alderlake",
    154: "alderlake",
    183: "raptorlake",
    186: "raptorlake",
    191: "raptorlake",
}
"""LLVM's names of processors that are to be measured, by model of family 6."""

_INTEL_CLIENTS_BY_FLAG: Final[_Newest] = [
    ("avx512_vbmi2", "icelake-client"),
    ("avx512f", "skylake-avx512"),
    ("avx_vnni", "alderlake"),
    ("avx2", "haswell"),
    ("avx", "sandybridge"),
    ("", "nehalem"),
]

_ANY_BY_FLAG: Final[_Newest] = [
    *_INTEL_SERVERS_BY_FLAG[:-1],
    ("avx512f", "skylake-avx512"),
    *_INTEL_CLIENTS_BY_FLAG[-3:],
]
"""Cores of a maker that is not known, or that a virtual machine does not tell."""


def core_of(cpuinfo: Mapping[str, str]) -> KnownCore:
    """Returns the core that the fields of /proc/cpuinfo describe: of its row, as it was measured, or as far as features tell."""
    return listed_core(cpuinfo) or MEASURED.get(processor_key(cpuinfo)) or unmeasured_core(cpuinfo)


def listed_core(cpuinfo: Mapping[str, str]) -> KnownCore | None:
    """Returns the row of a processor, None if it is in no table."""
    _, family, model = _parsed(cpuinfo)
    if cpuinfo.get("vendor_id") == "AuthenticAMD":
        return next((core for known, models, core in _AMD if family == known and model in models), None)
    if cpuinfo.get("vendor_id") == "GenuineIntel" and family == 6 and model in _INTEL_SERVERS:
        return replace(_MESH, tune=_INTEL_SERVERS[model])
    return None


def unmeasured_core(cpuinfo: Mapping[str, str]) -> KnownCore:
    """Returns the facts of a processor in no table before it is measured: only the name of the nearest core, for LLVM."""
    flags, family, model = _parsed(cpuinfo)
    vendor, cores = cpuinfo.get("vendor_id"), _ANY_BY_FLAG
    named: str | None = None
    if vendor == "AuthenticAMD":
        cores = _AMD_BY_FLAG
        named = next((name for known, models, name in _AMD_NAMES if family == known and model in models), None)
    elif vendor == "GenuineIntel":
        rented = "amx_tile" in flags or {"avx512f", "hypervisor"} <= flags
        cores = _INTEL_SERVERS_BY_FLAG if rented else _INTEL_CLIENTS_BY_FLAG
        if family == 6 and not {"hypervisor", "amx_tile"} & flags:
            named = _INTEL_CLIENTS.get(model)
    return replace(UNMEASURED, tune=named or _newest(cores, flags))


def processor_key(cpuinfo: Mapping[str, str]) -> str:
    """Returns the text by which measured facts are kept: the maker, family and model that a processor shows, and its flags."""
    return ";".join([cpuinfo.get(k, "") for k in ("vendor_id", "cpu family", "model", "flags")])


def _parsed(cpuinfo: Mapping[str, str]) -> tuple[frozenset[str], int, int]:
    family, model = (int(cpuinfo.get(k, "0")) for k in ("cpu family", "model"))
    return frozenset(cpuinfo.get("flags", "").split()), family, model


def _newest(cores: _Newest, flags: frozenset[str]) -> str:
    return next(name for flag, name in cores if not flag or flag in flags)
