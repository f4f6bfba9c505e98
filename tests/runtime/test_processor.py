"""What the processor can do is asked of itself, and the system's own list, where there is one, says the same."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from weft.native import _rt
from weft.targets import registry, this_machine, x86_cpus

CPUINFO = Path("/proc/cpuinfo")


def told(name: str) -> str:
    """Returns a field of the system's description of the first processor."""
    found = re.search(rf"^{name}\s*: *(.*)$", CPUINFO.read_text() if CPUINFO.exists() else "", re.MULTILINE)
    if found is None:
        pytest.skip(f"the system does not tell its processor's {name}")
    return found[1]


@pytest.mark.skipif(_rt.MACHINE != "x86_64", reason="its list of features has another name")
@pytest.mark.skipif("WEFT_TEST_LEVEL" in os.environ, reason="the tests take the processor for another")
def test_features_are_those_that_the_system_lists() -> None:
    assert set(_rt.features()) == set(told("flags").split()) & set(_rt.known_features())


@pytest.mark.skipif(_rt.MACHINE != "x86_64", reason="other processors have no such numbers")
def test_maker_family_and_model() -> None:
    assert _rt.processor() == (told("vendor_id"), int(told("cpu family")), int(told("model")))


@pytest.mark.skipif(_rt.MACHINE != "x86_64", reason="the features are x86's")
def test_all_that_code_may_need_can_be_asked_for() -> None:
    """A feature that is not known counts as missing: code that needs one would run nowhere."""
    needed = {f for level in x86_cpus.LEVELS for f in registry.needed_flags(x86_cpus.cpu(level))} | set(
        x86_cpus._OPTIONAL
    )
    assert needed <= set(_rt.known_features())


def test_features_have_one_name_each() -> None:
    assert len(_rt.known_features()) == len(set(_rt.known_features()))
    assert "" not in _rt.features()


def test_the_compiler_asks_what_the_loader_asks() -> None:
    assert this_machine.host_flags() == frozenset(_rt.features())
