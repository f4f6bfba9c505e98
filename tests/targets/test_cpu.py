"""Targets are facts: levels by name, options, and what this machine can run."""

from __future__ import annotations

import pytest

from weft.support.errors import InputError
from weft.targets import can_run, host, parse_target
from weft.targets.x86_cpus import LEVELS, cpu, has_level


def test_levels_are_ordered_by_width() -> None:
    widths = [cpu(name).isa.vector_bits for name in LEVELS]
    assert widths == [512, 256, 128]
    assert [cpu(name).lanes(32) for name in LEVELS] == [16, 8, 4]


def test_host_is_the_widest_level_it_has() -> None:
    levels = [name for name in LEVELS if can_run(cpu(name))]
    assert host().isa.vector_bits == cpu(levels[0]).isa.vector_bits
    assert can_run(host())
    assert host() is host()


def test_a_level_needs_all_of_its_features() -> None:
    assert not has_level(LEVELS["avx2"], frozenset({"avx", "avx2"}))
    assert not has_level(LEVELS["sse4"], frozenset())


def test_options() -> None:
    target = parse_target("cpu -mattr=avx2 -cores=3")
    assert (target.isa.vector_bits, target.cores, target.isa.fma) == (256, 3, True)
    assert parse_target("cpu -cores=3 -mattr=avx2").isa.vector_bits == 256
    assert parse_target("cpu") == host()


def test_fingerprint_tells_targets_apart() -> None:
    texts = {cpu(name).fingerprint() for name in LEVELS} | {parse_target("cpu -cores=99").fingerprint()}
    assert len(texts) == 4
    assert "native=abs,ceil" in cpu("sse4").fingerprint()


def test_sse4_has_no_fused_multiply_add() -> None:
    assert "fma" not in cpu("sse4").isa.native
    assert "fma" in cpu("avx2").isa.native


WRONG = [
    (
        "gpu",
        "there is no target 'gpu'\n  hint: use cpu, cpu -mattr=avx512|avx2|sse4, or another that `weft targets` lists",
    ),
    ("", "there is no target ''\n  hint: use cpu, cpu -mattr=avx512|avx2|sse4, or another that `weft targets` lists"),
    ("\n", "there is no target ''\n  hint: use cpu, cpu -mattr=avx512|avx2|sse4, or another that `weft targets` lists"),
    ("cpu -mattr=mmx", "there is no CPU level 'mmx'\n  hint: use one of avx512, avx2, sse4"),
    *[
        (f"cpu -cores={n}", f"target option '-cores={n}' is not understood\n  hint: use -mattr=LEVEL or -cores=N")
        for n in ("0", "", "-1", "²", "٣", "9" * 5000)
    ],
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_what_is_not_understood_is_named(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        parse_target(text)
    assert str(error.value) == message
