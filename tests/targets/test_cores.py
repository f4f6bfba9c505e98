"""What is known of a core follows from the fields of /proc/cpuinfo, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.processors import (
    PROCESSORS,
    Processor,
    cpuinfo,
    empty_tables,
    every_core,
    fill_tables,
    forget,
    unlisted_processor,
)

from weft.targets.cores import Core, core_of
from weft.targets.cpu import LEVELS, can_run, cpu, host


@pytest.fixture(autouse=True)
def listed() -> Iterator[None]:
    """The tables are what is tested here, in a run that takes the processor for an unlisted one, too."""
    with pytest.MonkeyPatch.context() as patch:
        fill_tables(patch)
        forget()
        yield
    forget()


def by_name(processor: Processor) -> str:
    return processor.name


def test_amd_families_differ_in_the_width_of_their_units() -> None:
    assert core_of(cpuinfo("AuthenticAMD", 25, 17)) == Core("znver4", 1)
    assert core_of(cpuinfo("AuthenticAMD", 26, 2)) == Core("znver5", 2)
    assert core_of(cpuinfo("AuthenticAMD", 22, 0)).wide_fma_per_cycle == 1
    assert core_of(cpuinfo("AuthenticAMD", 99, 0)).wide_fma_per_cycle == 2


@pytest.mark.parametrize(
    ("model", "tune"),
    [(0x01, "znver3"), (0x11, "znver4"), (0x21, "znver3"), (0x50, "znver3"), (0x61, "znver4"), (0xA0, "znver4")],
)
def test_family_25_is_two_generations(model: int, tune: str) -> None:
    assert core_of(cpuinfo("AuthenticAMD", 25, model)).tune == tune


def test_servers_on_a_mesh_ask_ahead() -> None:
    core, plain = core_of(cpuinfo("GenuineIntel", 6, 207)), Core("")
    assert core.tune == "emeraldrapids"
    assert core.read_ahead > 0
    assert core.read_ahead_uses < plain.read_ahead_uses, "even what is used once"
    assert core.l3_speed < plain.l3_speed
    newer = core_of(cpuinfo("GenuineIntel", 6, 250, "avx512", "hypervisor"))
    assert (newer.tune, newer.read_ahead_uses) == ("skylake-avx512", 1)


def test_clients_have_one_wide_unit_and_foresee_streams() -> None:
    assert core_of(cpuinfo("GenuineIntel", 6, 158)) == Core("skylake", 1)
    assert core_of(cpuinfo("GenuineIntel", 6, 250)) == Core("haswell", 1)


@pytest.mark.parametrize("processor", PROCESSORS, ids=by_name)
def test_a_processor_is_timed_like_the_nearest_core(processor: Processor) -> None:
    assert core_of(processor.fields).tune == processor.tune


@pytest.mark.parametrize("processor", PROCESSORS, ids=by_name)
def test_one_that_is_in_no_table_by_its_features(processor: Processor, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = core_of(processor.fields)
    empty_tables(monkeypatch)
    core = core_of(processor.fields)
    assert core.tune == processor.unlisted
    assert (core.read_ahead_uses, core.l3_speed) == (listed.read_ahead_uses, listed.l3_speed)


def test_no_core_is_timed_like_none() -> None:
    assert not {"", "generic"} & set(every_core())
    assert {*(p.tune for p in PROCESSORS), *(p.unlisted for p in PROCESSORS)} <= set(every_core())


def test_a_level_that_the_machine_lacks_is_timed_like_a_core_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.targets.cpu.host_flags", frozenset)
    for level, tune in zip(LEVELS, ("skylake-avx512", "haswell", "nehalem"), strict=True):
        assert cpu.__wrapped__(level).tune == tune


def test_this_machine_may_be_in_no_table() -> None:
    listed = host()
    with unlisted_processor():
        unlisted = host()
        assert can_run(unlisted)
    assert (unlisted.features, unlisted.vector_bits) == (listed.features, listed.vector_bits)
    assert unlisted.tune in every_core()
    assert host() == listed
