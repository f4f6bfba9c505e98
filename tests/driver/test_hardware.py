"""A machine's fingerprint: the same in every process, and another one where other plans are fast."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from tests.support.processors import FIXED, unlisted_processor

from weft.driver.hardware import hardware_of
from weft.targets import Target, cpu, host, parse_target, use_measured

TELL = "from weft.driver.hardware import hardware_of\nfrom weft.targets import host\nprint(hardware_of(host()).digest)"


def test_it_is_the_same_in_another_process() -> None:
    done = subprocess.run([sys.executable, "-c", TELL], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == hardware_of(host()).digest


def test_measured_facts_do_not_count() -> None:
    here = host()
    for facts in ({"l2_speed": 1.0}, {"fork_cycles": 7}, {"memory_speed": 2.5}, {"name": "another"}):
        assert hardware_of(here.having(**facts)).digest == hardware_of(here).digest


def test_the_measured_share_of_the_third_level_does_not_count() -> None:
    """Each time that a processor is measured, another share is found; records are to be found all the same."""
    found = []
    with unlisted_processor(measured=False):
        found.append(hardware_of(host()))  # before it is measured
        for share in (1 << 19, 1 << 20):
            use_measured(replace(FIXED, tune=host().core.tune, l3_share=share))
            assert host().caches.l3 == share
            found.append(hardware_of(host()))
    assert len({(h.digest, h.facts) for h in found}) == 1


@pytest.mark.parametrize(
    "other", [{"cores": 77}, {"l1": 1 << 10}, {"l2": 1 << 10}, {"l3": 1 << 10}, {"vector_bits": 64}]
)
def test_facts_that_plans_depend_on_count(other: dict[str, int]) -> None:
    assert hardware_of(host().having(**other)).digest != hardware_of(host()).digest


def test_targets_are_told_apart() -> None:
    targets: list[Target] = [
        cpu("sse4"),
        cpu("avx2"),
        parse_target("aarch64"),
        parse_target("c"),
        parse_target("c-vector"),
    ]
    assert len({hardware_of(t).digest for t in targets}) == len(targets)


def test_the_name_is_there_to_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    before = hardware_of(host())
    monkeypatch.setattr("weft.driver.hardware.processor_name", lambda: "Zen 9")
    assert hardware_of(host()).digest == before.digest
    assert json.loads(hardware_of(host()).facts)["name"] == "Zen 9"
    assert "processor" not in json.loads(hardware_of(parse_target("aarch64")).facts)


def test_another_processor_is_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    before = hardware_of(host()).digest
    monkeypatch.setattr("weft.driver.hardware.processor_key", lambda told: "another")
    assert hardware_of(host()).digest != before
