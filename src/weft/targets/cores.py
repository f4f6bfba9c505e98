"""What is known of x86 cores beyond the instructions they have: their widths, and how fast they read.

The system gives the sizes of caches, not their speeds. These are what one core reads of data that another level holds, measured
with sequential reads in huge pages; a rule that chooses between more arithmetic and more memory needs them to a factor of two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True)
class Core:
    """A kind of core: LLVM's name for its timing, the 512-bit multiply-adds of a cycle, and what it reads (`Target`)."""

    tune: str = "generic"
    wide_fma_per_cycle: int = 2
    l2_speed: float = 48.0
    l3_speed: float = 24.0
    memory_speed: float = 8.0
    read_ahead: int = 4096
    read_ahead_uses: int = 4
    l3_share: int = 1 << 40
    """Bytes of the third level that a program can count on; more cores than the system shows may share it."""


_AMD: Final = {23: Core("znver2", 1), 25: Core("znver4", 1), 26: Core("znver5")}
"""By family. Before Zen 5 a multiply-add of 512 bits takes both units."""

_MESH: Final = Core(l3_speed=10.0, memory_speed=4.5, read_ahead_uses=1, l3_share=64 << 20)
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

_INTEL_CLIENTS: Final = {
    60: "haswell", 69: "haswell", 70: "haswell", 61: "broadwell", 71: "broadwell", 78: "skylake", 94: "skylake",
    142: "skylake", 158: "skylake", 165: "skylake", 151: "alderlake", 154: "alderlake", 183: "raptorlake", 186: "raptorlake",
}  # fmt: skip


def core_of(cpuinfo: Mapping[str, str]) -> Core:
    """Returns the core that the fields of /proc/cpuinfo describe; a plain one if it is not known."""
    vendor = cpuinfo.get("vendor_id")
    family, model = (int(cpuinfo.get(k, "0")) for k in ("cpu family", "model"))
    if vendor == "AuthenticAMD":
        return _AMD.get(family, Core(wide_fma_per_cycle=1 if family < 26 else 2))
    if vendor != "GenuineIntel" or family != 6:
        return Core()
    if model in _INTEL_SERVERS:
        return replace(_MESH, tune=_INTEL_SERVERS[model])
    if "avx512f" in cpuinfo.get("flags", "").split() and "hypervisor" in cpuinfo.get("flags", "").split():
        return _MESH  # a newer server: rented machines are no clients
    return Core(_INTEL_CLIENTS.get(model, "generic"))
