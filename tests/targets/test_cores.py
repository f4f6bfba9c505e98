"""What is known of a core follows from the fields of /proc/cpuinfo, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from tests.support.processors import (
    FIXED,
    PROCESSORS,
    Processor,
    cpuinfo,
    empty_tables,
    every_core,
    fill_tables,
    forget,
    unlisted_processor,
)

from weft.targets import LEVELS, can_run, cores, cpu, host
from weft.targets.cores import UNMEASURED, core_of, listed_core, processor_key, unmeasured_core

DESIGN: Final = Path(__file__).resolve().parents[2] / "docs" / "design"


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
    zen4, zen5 = (core_of(cpuinfo("AuthenticAMD", family, model)) for family, model in ((25, 17), (26, 2)))
    assert (zen4.tune, zen4.wide_fma_per_cycle) == ("znver4", 1)
    assert (zen5.tune, zen5.wide_fma_per_cycle) == ("znver5", 2)
    assert [c.core(bits, fma=True).fma_per_cycle for c in (zen4, zen5) for bits in (256, 512)] == [2, 1, 2, 2]
    assert [c.core(bits, fma=True).half_rate_wide for c in (zen4, zen5) for bits in (256, 512)] == [
        False,
        True,
        False,
        False,
    ]
    assert zen4.core(128, fma=False).fma_per_cycle == 1


@pytest.mark.parametrize(
    ("model", "tune"),
    [(0x01, "znver3"), (0x11, "znver4"), (0x21, "znver3"), (0x50, "znver3"), (0x61, "znver4"), (0xA0, "znver4")],
)
def test_family_25_is_two_generations(model: int, tune: str) -> None:
    assert core_of(cpuinfo("AuthenticAMD", 25, model)).tune == tune


def test_servers_on_a_mesh_ask_ahead() -> None:
    core, plain = core_of(cpuinfo("GenuineIntel", 6, 207)), core_of(cpuinfo("AuthenticAMD", 25, 17))
    assert core.tune == "emeraldrapids"
    assert core.read_ahead > 0
    assert core.read_ahead_uses < plain.read_ahead_uses, "even what is used once"
    assert core.l3_speed < plain.l3_speed


def test_a_client_under_a_hypervisor_may_be_anything() -> None:
    shown = cpuinfo("GenuineIntel", 6, 158, more="hypervisor")
    assert listed_core(shown) is None
    assert core_of(shown) == replace(UNMEASURED, tune="haswell")
    assert listed_core(cpuinfo("GenuineIntel", 6, 207, "avx512", "hypervisor")) is not None
    assert listed_core(cpuinfo("GenuineIntel", 6, 167, "avx512", "amx_tile")) is None


def test_relatives_of_measured_processors_are_to_be_measured() -> None:
    measured = [p.name for p in PROCESSORS if listed_core(p.fields) is not None]
    assert measured == ["zen 3", "zen 4", "skylake server", "ice lake server", "emerald rapids"]


def test_what_was_measured_is_a_processors_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.targets.cores.MEASURED", {})
    one, other = (cpuinfo("AuthenticAMD", 99, model) for model in (0, 1))
    cores.MEASURED[processor_key(one)] = FIXED
    assert core_of(one) is FIXED
    assert core_of(other) == unmeasured_core(other)


def test_every_row_says_where_its_figures_come_from() -> None:
    for processor in PROCESSORS:
        source = core_of(processor.fields).source
        assert re.search(r"\b20\d\d\b", source), f"{processor.name}: {source!r} has no date"
        for note in re.findall(r"\b\d{4}(?=[,)])", source.partition("docs/design/")[2]):
            assert list(DESIGN.glob(f"{note}-*.md")), f"{processor.name}: there is no note {note}"


@pytest.mark.parametrize("processor", PROCESSORS, ids=by_name)
def test_a_processor_is_timed_like_the_nearest_core(processor: Processor) -> None:
    assert core_of(processor.fields).tune == processor.tune


@pytest.mark.parametrize("processor", PROCESSORS, ids=by_name)
def test_one_that_is_in_no_table_by_its_features(processor: Processor, monkeypatch: pytest.MonkeyPatch) -> None:
    empty_tables(monkeypatch)
    assert core_of(processor.fields) == replace(UNMEASURED, tune=processor.unlisted)


def test_no_core_is_timed_like_none() -> None:
    assert not {"", "generic"} & set(every_core())
    assert {*(p.tune for p in PROCESSORS), *(p.unlisted for p in PROCESSORS)} <= set(every_core())


def test_a_level_that_the_machine_lacks_is_timed_like_a_core_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.targets.x86_cpus.host_flags", frozenset)
    for level, tune in zip(LEVELS, ("skylake-avx512", "haswell", "nehalem"), strict=True):
        assert cpu.__wrapped__(level).core.tune == tune


def test_this_machine_may_be_in_no_table() -> None:
    listed = host()
    with unlisted_processor():
        unlisted = host()
        assert can_run(unlisted)
    assert (unlisted.isa.features, unlisted.isa.vector_bits) == (listed.isa.features, listed.isa.vector_bits)
    assert unlisted.core.tune in every_core()
    assert unlisted.caches.l3_speed == FIXED.l3_speed
    assert host() == listed
