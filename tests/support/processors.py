"""Processors as /proc/cpuinfo shows them: listed ones, ones that no table can know yet, and makers that are not known."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

import pytest

from weft.driver.cache.code_cache import default_cache
from weft.driver.calibrate import keep_measured
from weft.targets import KnownCore, cores, host, use_measured
from weft.targets import cpuinfo as cpuinfo_here
from weft.targets.x86_cpus import LEVELS, cpu, flags_of


@dataclass(frozen=True)
class Processor:
    """What a processor shows, and the cores that it is to be timed like: as listed, and if no table had it."""

    name: str
    fields: dict[str, str]
    tune: str
    unlisted: str


def cpuinfo(vendor: str, family: int, model: int, level: str = "avx2", more: str = "") -> dict[str, str]:
    """Returns the fields of a processor that has the features of *level* and the flags in *more*."""
    flags = f"{' '.join(flags_of(LEVELS[level]))} {more}"
    return {"vendor_id": vendor, "cpu family": str(family), "model": str(model), "flags": flags}


_AMD, _INTEL = "AuthenticAMD", "GenuineIntel"
_VM = "avx512_vnni hypervisor"
_ICE = f"{_VM} avx512_vbmi2"
_AMX = f"{_ICE} amx_tile"
PROCESSORS: Final = [
    Processor("zen 1", cpuinfo(_AMD, 23, 0x01), "znver1", "znver1"),
    Processor("zen 2", cpuinfo(_AMD, 23, 0x31, more="rdpid"), "znver2", "znver2"),
    Processor("zen 3", cpuinfo(_AMD, 25, 0x01, more="rdpid vaes"), "znver3", "znver3"),
    Processor("zen 4", cpuinfo(_AMD, 25, 0x11, "avx512", "rdpid vaes"), "znver4", "znver4"),
    Processor("zen 5", cpuinfo(_AMD, 26, 0x02, "avx512", "rdpid vaes avx512_vp2intersect"), "znver5", "znver5"),
    Processor("excavator", cpuinfo(_AMD, 21, 0x65), "znver1", "znver1"),
    Processor("jaguar", cpuinfo(_AMD, 22, 0x00, "sse4", "avx"), "bdver1", "bdver1"),
    Processor("zen of a later year", cpuinfo(_AMD, 27, 0x00, "avx512", "rdpid vaes"), "znver4", "znver4"),
    Processor("haswell", cpuinfo(_INTEL, 6, 60), "haswell", "haswell"),
    Processor("skylake", cpuinfo(_INTEL, 6, 158), "skylake", "haswell"),
    Processor("alder lake", cpuinfo(_INTEL, 6, 151, more="avx_vnni"), "alderlake", "alderlake"),
    Processor("rocket lake", cpuinfo(_INTEL, 6, 167, "avx512", "avx512_vbmi2"), "rocketlake", "icelake-client"),
    Processor("client of a later year", cpuinfo(_INTEL, 6, 250, more="avx_vnni"), "alderlake", "alderlake"),
    Processor("ivy bridge", cpuinfo(_INTEL, 6, 58, "sse4", "avx"), "sandybridge", "sandybridge"),
    Processor("goldmont", cpuinfo(_INTEL, 6, 92, "sse4"), "nehalem", "nehalem"),
    Processor("skylake server", cpuinfo(_INTEL, 6, 85, "avx512", "hypervisor"), "skylake-avx512", "skylake-avx512"),
    Processor("cooper lake", cpuinfo(_INTEL, 6, 0, "avx512", _VM), "cascadelake", "cascadelake"),
    Processor("ice lake server", cpuinfo(_INTEL, 6, 106, "avx512", _ICE), "icelake-server", "icelake-server"),
    Processor("emerald rapids", cpuinfo(_INTEL, 6, 207, "avx512", _AMX), "emeraldrapids", "sapphirerapids"),
    Processor(
        "server shown as rocket lake", cpuinfo(_INTEL, 6, 167, "avx512", _ICE), "icelake-server", "icelake-server"
    ),
    Processor(
        "server of a later year", cpuinfo(_INTEL, 19, 1, "avx512", f"{_AMX} amx_fp16"), "graniterapids", "graniterapids"
    ),
    Processor("unnamed, AMX", cpuinfo("", 0, 0, "avx512", _AMX), "sapphirerapids", "sapphirerapids"),
    Processor("unnamed, AVX-512", cpuinfo("QEMU", 6, 6, "avx512"), "skylake-avx512", "skylake-avx512"),
    Processor("hygon", cpuinfo("HygonGenuine", 24, 0), "haswell", "haswell"),
    Processor("zhaoxin", cpuinfo("  Shanghai  ", 7, 91, "sse4", "avx"), "sandybridge", "sandybridge"),
    Processor("via", cpuinfo("CentaurHauls", 6, 15, "sse4"), "nehalem", "nehalem"),
    Processor("nothing known", {}, "nehalem", "nehalem"),
]


_TABLES: Final = {name: getattr(cores, name) for name in ("_AMD", "_INTEL_SERVERS", "_AMD_NAMES", "_INTEL_CLIENTS")}
"""The tables of cores as they are, whatever a run of the tests makes of them."""


def every_core() -> list[str]:
    """Returns the names of all cores that a processor may be timed like."""
    by_flag = [*cores._AMD_BY_FLAG, *cores._INTEL_SERVERS_BY_FLAG, *cores._INTEL_CLIENTS_BY_FLAG, *cores._ANY_BY_FLAG]
    amd, servers, amd_names, clients = _TABLES.values()
    listed = {core.tune for _, _, core in amd} | {name for _, _, name in amd_names}
    listed |= {*servers.values(), *clients.values()}
    return sorted(listed | {name for _, name in by_flag})


def empty_tables(patch: pytest.MonkeyPatch) -> None:
    """Makes every processor an unlisted one."""
    for name, table in _TABLES.items():
        patch.setattr(cores, name, type(table)())


def fill_tables(patch: pytest.MonkeyPatch) -> None:
    """Lists all known processors, in a run of the tests that takes them for unlisted ones, too."""
    for name, table in _TABLES.items():
        patch.setattr(cores, name, table)


def forget() -> None:
    """Has targets made anew from what is now known of the machine."""
    cpu.cache_clear()
    host.cache_clear()


FIXED: Final = KnownCore(
    "",
    "tests, 2026: not measured, so that all runs compile the same",
    fma_latency=4,
    loads_per_cycle=2,
    l2_speed=48.0,
    l3_speed=16.0,
    memory_speed=6.0,
    read_ahead_uses=4,
)
"""What tests say was measured of a processor in no table."""


def pretend_measured(like: KnownCore = FIXED) -> None:
    """Lets the targets of this machine have the facts of *like*, if no table has it, as if it had been measured."""
    if cores.listed_core(cpuinfo_here()) is None:
        use_measured(replace(like, tune=cores.unmeasured_core(cpuinfo_here()).tune))


def keep_pretended() -> None:
    """Puts such facts into the cache that `WEFT_CACHE_DIR` names, for the processes that tests start."""
    for core in cores.MEASURED.values():
        keep_measured(core, default_cache())


def forget_measured() -> None:
    """Has nothing measured of any processor."""
    cores.MEASURED.clear()
    forget()


@contextmanager
def kept_measured() -> Iterator[None]:
    """Has what is measured of processors meanwhile be forgotten at the end, as at the end of a process."""
    before = dict(cores.MEASURED)
    try:
        yield
    finally:
        if before != cores.MEASURED:
            forget_measured()
            cores.MEASURED.update(before)


@contextmanager
def unlisted_processor(*, measured: bool = True) -> Iterator[None]:
    """Takes this machine for one that no table has, with the fixed facts as those that were *measured*, or with none."""
    try:
        with kept_measured(), pytest.MonkeyPatch.context() as patch:
            empty_tables(patch)
            forget_measured()
            if measured:
                pretend_measured()
            yield
    finally:
        forget()
