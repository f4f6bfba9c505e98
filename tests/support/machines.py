"""Machines whose facts are fixed, for tests of what is chosen by them: those of the host differ from one to the next."""

from __future__ import annotations

from weft.targets import TILE, cpu
from weft.targets.scopes import CPU_SCOPES

SERVER = cpu("avx512").having(
    fma_per_cycle=2,
    half_rate_wide=False,
    broadcast_slowdown=1.5,
    l1=48 << 10,
    l2=2 << 20,
    l3=64 << 20,
    l2_speed=48.0,
    l3_speed=10.0,
    memory_speed=4.5,
    read_ahead=4096,
    read_ahead_uses=1,
    cores=2,
)
"""A core with vectors of 512 bits that multiplies as many of them in a cycle as it reads, its third level far away."""

AMX = cpu("avx512").having(
    features=tuple(sorted({*cpu("avx512").isa.features, "+amx-bf16", "+amx-int8", "+amx-tile"})),
    scopes=(*CPU_SCOPES, TILE),
)
"""A machine with matrix registers, beside vectors of 512 bits."""
