"""Machines that several tests of the graph choose for."""

from __future__ import annotations

from weft.targets import cpu

WIDE = cpu("avx512").having(
    l2=1 << 20,
    l3=32 << 20,
    fma_per_cycle=1,
    half_rate_wide=True,
    broadcast_slowdown=1.0,
    vector_registers=32,
    l2_speed=48.0,
    l3_speed=10.0,
    memory_speed=4.5,
)
"""A machine with vectors of sixteen floats, and caches as fast as those of a server's mesh, wherever the tests run."""
