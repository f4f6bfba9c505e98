"""The machines that kernels are replayed for, one a vector level; no fact of them is the host's."""

from __future__ import annotations

from typing import Final

from weft.targets import LEVELS, Target, cpu


def machine(
    level: str,
    tune: str,
    caches: tuple[int, int, int],
    *,
    fma: int,
    scattered: float,
    l3: float,
    memory: float,
    uses: int,
) -> Target:
    """Returns a machine of two cores: *caches* in KiB, *l3* and *memory* in bytes of a cycle, *scattered* in parts of L2's."""
    first, second, third = (size << 10 for size in caches)
    return cpu(level).having(tune=tune, features=tuple(sorted(LEVELS[level].features)), cores=2, fma_per_cycle=fma, line=64,
        fma_latency=4, loads_per_cycle=2, forwarding_latency=5, issue_width=6, decoded_instructions=4000, decode_rate=2.0,
        half_rate_wide=False, broadcast_slowdown=1.5 if level == "avx512" else 1.0, fork_cycles=2048, wake_cycles=8192,
        l1=first, l2=second, l3=third, l2_speed=48.0, scattered_part=scattered, l3_speed=l3, memory_speed=memory,
        read_ahead=4096, read_ahead_uses=uses,
    )  # fmt: skip


MACHINES: Final = {
    "avx512": machine("avx512", "sapphirerapids", (48, 2048, 65536), fma=2, scattered=1.0, l3=10.0, memory=4.5, uses=1),
    "avx2": machine("avx2", "znver3", (32, 512, 32768), fma=2, scattered=0.3, l3=24.0, memory=8.0, uses=4),
    "sse4": machine("sse4", "nehalem", (32, 256, 8192), fma=1, scattered=0.3, l3=24.0, memory=8.0, uses=4),
}
"""By the name of the level; timed like a server of Intel's, a core of AMD's, and an old one."""
