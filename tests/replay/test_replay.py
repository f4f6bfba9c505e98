"""The compiler makes of stored models the very code that is stored, and what differs is shown."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.replay import store
from tests.replay.__main__ import MODELS, compare, made
from tests.replay.kernels import Stages, digest
from tests.replay.machines import MACHINES

FEW = ("dqn", "mlp", "C6", "D4", "matmul_odd", "softmax_tail")
EACH_MACHINE = pytest.mark.parametrize("machine", MACHINES)


@EACH_MACHINE
@pytest.mark.parametrize("model", FEW)
def test_generated_code_is_as_stored(model: str, machine: str) -> None:
    differing = compare([model], machine, made(model, machine))
    assert not differing, differing[0]


@pytest.mark.slow
@EACH_MACHINE
@pytest.mark.parametrize("model", sorted(set(MODELS) - set(FEW)))
def test_all_generated_code_is_as_stored(model: str, machine: str) -> None:
    differing = compare([model], machine, made(model, machine))
    assert not differing, differing[0]


@EACH_MACHINE
def test_every_model_is_stored(machine: str) -> None:
    stored = store.read_hashes(machine)
    assert {name.split("/")[0] for name in stored} == set(MODELS)
    assert len(stored) >= 200
    programs = store.read_programs(machine)
    assert all(h in programs for row in stored.values() for h in row[:-1])


@pytest.fixture
def kernel() -> Stages:
    return made("D4", "avx2")["D4/conv2d.1"]


@pytest.mark.parametrize("stage", ["loops", "scheduled", "lowered"])
def test_both_programs_are_shown(kernel: Stages, stage: str) -> None:
    """Of the first stage that differs, though all after it do, too."""
    before = replace(kernel, **{stage: "the stored program\nits end"}, llvm="0" * 64)
    programs = {digest(getattr(before, s)): str(getattr(before, s)) for s in ("loops", "scheduled", "lowered")}
    text = store.difference(before.hashes(), kernel, programs)
    assert text.startswith(f"the {stage} program differs")
    assert "-the stored program" in text
    assert f"+{getattr(kernel, stage).splitlines()[0]}" in text


def test_other_llvm_of_the_same_program_is_told(kernel: Stages) -> None:
    text = store.difference(replace(kernel, llvm="0" * 64).hashes(), kernel, {})
    assert text.startswith("the same program is written as other LLVM IR")
    assert kernel.lowered in text


def test_kernels_that_are_gone_or_new_are_told(kernel: Stages) -> None:
    (text,) = compare(["D4"], "avx2", {"D4/entry": made("D4", "avx2")["D4/entry"]})
    assert text == "avx2 D4/conv2d.1: it is gone"
    (text,) = compare(["D4"], "avx2", {**made("D4", "avx2"), "D4/more.1": kernel})
    assert text.startswith("avx2 D4/more.1: it is new")
