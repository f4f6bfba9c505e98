"""What is known of a core follows from the fields of /proc/cpuinfo, and nothing else."""

from __future__ import annotations

from weft.targets.cores import Core, core_of


def fields(vendor: str, family: int, model: int, flags: str = "sse2 avx2") -> dict[str, str]:
    return {"vendor_id": vendor, "cpu family": str(family), "model": str(model), "flags": flags}


def test_amd_families_differ_in_the_width_of_their_units() -> None:
    assert core_of(fields("AuthenticAMD", 25, 17)) == Core("znver4", 1)
    assert core_of(fields("AuthenticAMD", 26, 2)) == Core("znver5", 2)
    assert core_of(fields("AuthenticAMD", 22, 0)).wide_fma_per_cycle == 1
    assert core_of(fields("AuthenticAMD", 99, 0)).wide_fma_per_cycle == 2


def test_servers_on_a_mesh_ask_ahead() -> None:
    core = core_of(fields("GenuineIntel", 6, 207))
    assert core.tune == "emeraldrapids"
    assert core.read_ahead > 0
    assert core.read_ahead_uses < Core().read_ahead_uses, "even what is used once"
    assert core.l3_speed < Core().l3_speed
    newer = core_of(fields("GenuineIntel", 6, 250, "avx512f hypervisor"))
    assert (newer.tune, newer.read_ahead) == ("generic", core.read_ahead)


def test_clients_and_what_is_not_known_are_plain() -> None:
    assert core_of(fields("GenuineIntel", 6, 158)) == Core("skylake")
    assert core_of(fields("GenuineIntel", 6, 250)) == Core()
    assert core_of(fields("SomeoneElse", 1, 1)) == Core()
    assert core_of({}) == Core()
