"""Targets of compilation: facts about machines; `instructions` declares their tensor intrinsics."""

from weft.targets.cores import MEASURED, WIDE, KnownCore, listed_core, processor_key, unmeasured_core
from weft.targets.records import RESERVED_BYTES, Caches, Core, Grid, Isa, Unit
from weft.targets.registry import PRESETS, can_run, host, missing_flags, needed_flags, parse_target, use_measured
from weft.targets.scopes import SHARED, SIGHTS, TILE, WARP, Scope, Sight, sight_of
from weft.targets.target import Kind, Target
from weft.targets.this_machine import cache_sizes, cpuinfo, host_flags, machine_name, processor_name, usable_cores
from weft.targets.x86_cpus import LEVELS, cpu

__all__ = [
    "LEVELS", "MEASURED", "PRESETS", "RESERVED_BYTES", "SHARED", "SIGHTS", "TILE", "WARP", "WIDE",
    "Caches", "Core", "Grid", "Isa", "Kind",
    "KnownCore", "Scope", "Sight", "Target", "Unit", "cache_sizes", "can_run", "cpu", "cpuinfo", "host", "host_flags",
    "listed_core", "machine_name", "missing_flags", "needed_flags", "parse_target", "processor_key", "processor_name", "sight_of",
    "unmeasured_core", "usable_cores", "use_measured",
]
