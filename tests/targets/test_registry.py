"""Targets by name, and what a machine answers when asked whether it runs code for one: never a false yes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from weft.support.errors import InputError
from weft.targets import LEVELS, PRESETS, can_run, cpu, host, missing_flags, needed_flags, parse_target, registry
from weft.targets.grid_machines import GENERIC_THREADS
from weft.targets.instructions.gemm_unit import GEMM_UNIT_TARGET
from weft.targets.plain import PLAIN


class Machine:
    """Lets the registry take this machine for another."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.patch = patch

    def become(self, name: str, flags: str) -> None:
        self.patch.setattr(registry, "machine_name", lambda: name)
        self.patch.setattr(registry, "host_flags", lambda: frozenset(flags.split()))
        self.patch.setattr(registry, "page_size", lambda: 65536)
        self.patch.setattr(registry, "cache_sizes", lambda: {1: 64 << 10, 2: 1 << 20, 3: 32 << 20, 4: 1 << 30})
        host.cache_clear()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    yield Machine(monkeypatch)
    monkeypatch.undo()
    host.cache_clear()


def test_names_are_parsed_to_their_presets() -> None:
    for name, preset in PRESETS.items():
        assert parse_target(name) == preset()
    assert parse_target("aarch64 -cores=3") == PLAIN["aarch64"].having(cores=3)


def test_options_of_x86_are_not_for_others() -> None:
    with pytest.raises(InputError) as error:
        parse_target("aarch64 -mattr=avx2")
    assert str(error.value) == "target option '-mattr=avx2' is not understood\n  hint: use -cores=N"


ARM = "fp asimd aes pmull sha1 sha2 crc32 atomics"


def test_an_arm_server(machine: Machine) -> None:
    machine.become("aarch64", ARM)
    here = host()
    assert (here.name, here.isa.machine, here.isa.vector_bits, here.kind) == ("cpu", "aarch64", 128, "cpu")
    assert (here.caches.l1, here.caches.l3, here.caches.page) == (64 << 10, 32 << 20, 65536)
    assert can_run(here)
    assert parse_target("cpu") == here
    assert not any(can_run(cpu(level)) for level in LEVELS)
    dotting = here.having(features=("+dotprod", "+neon"))
    assert needed_flags(dotting) == ("asimddp",)
    assert not can_run(dotting)
    machine.become("aarch64", f"{ARM} asimddp")
    assert can_run(dotting)


def test_flags_of_x86_do_not_make_an_arm_machine_run_its_code(machine: Machine) -> None:
    machine.become("aarch64", " ".join(needed_flags(cpu("avx512"))))
    assert missing_flags(cpu("avx512")) == []
    assert not can_run(cpu("avx512"))


def test_an_x86_machine_runs_no_arm_code(machine: Machine) -> None:
    machine.become("x86_64", f"{ARM} asimddp {' '.join(needed_flags(cpu('avx512')))}")
    assert can_run(cpu("sse4"))
    assert not any(can_run(t) for t in PLAIN.values())


def test_an_old_x86_machine_lacks_features(machine: Machine) -> None:
    machine.become("x86_64", " ".join(needed_flags(cpu("sse4"))))
    assert can_run(cpu("sse4").having(features=LEVELS["sse4"].features))
    assert not can_run(cpu("avx2"))
    assert "avx2" in missing_flags(cpu("avx2"))


@pytest.mark.parametrize("target", [GENERIC_THREADS, GEMM_UNIT_TARGET, cpu("sse4").having(triple="", features=())])
@pytest.mark.parametrize("name", ["x86_64", "aarch64", ""])
def test_targets_of_no_architecture_run_nowhere(machine: Machine, target: object, name: str) -> None:
    machine.become(name, ARM)
    assert not can_run(target)  # type: ignore[arg-type]


def test_a_machine_without_a_preset(machine: Machine) -> None:
    machine.become("s390x", "")
    with pytest.raises(InputError) as error:
        host()
    assert str(error.value).startswith("there is no target for this machine, s390x\n  hint: compile for one of cpu")
    assert not any(can_run(t) for t in (cpu("sse4"), *PLAIN.values()))


def test_facts_are_replaced_by_their_names() -> None:
    here = cpu("avx2")
    other = here.having(l2=1, tune="znver3", vector_bits=64, cores=7)
    assert (other.caches.l2, other.core.tune, other.isa.vector_bits, other.cores) == (1, "znver3", 64, 7)
    assert other.having(l2=here.caches.l2, tune=here.core.tune, vector_bits=256, cores=here.cores) == here
    with pytest.raises(TypeError, match="speed"):
        here.having(speed=1)
