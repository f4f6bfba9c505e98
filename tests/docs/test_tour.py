"""Every chapter of the tour does what it says, on this machine and on one with narrower vectors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.markdown import ROOT, SPEED, Undecided, blocks, run

from weft.targets import KnownCore, registry, this_machine, x86_cpus

CHAPTERS = sorted((ROOT / "docs" / "tour").glob("*.md"))
TIMED = [p for p in CHAPTERS if any(b.file == SPEED for b in blocks(p))]
EACH = pytest.mark.parametrize(
    "chapter", [pytest.param(p, marks=pytest.mark.timed if p in TIMED else (), id=p.stem) for p in CHAPTERS]
)


@EACH
def test_chapter(chapter: Path) -> None:
    check(chapter)


def check(chapter: Path) -> None:
    """Runs a chapter; skips, when all else holds, what it says of speed on a machine that others disturb."""
    try:
        assert run(chapter) > 0
    except Undecided as reason:
        pytest.skip(str(reason))


@pytest.fixture
def avx2_alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes this machine look like one without AVX-512."""
    flags = frozenset(f for f in this_machine.host_flags() if not f.startswith("avx512") and f != "avx_vnni")
    monkeypatch.setattr(x86_cpus, "host_flags", lambda: flags)
    monkeypatch.setattr(registry, "host_flags", lambda: flags)
    monkeypatch.setattr(x86_cpus, "core_of", lambda _: KnownCore("haswell", "the test"))
    for cached in (x86_cpus.cpu, registry.host):
        cached.cache_clear()
    yield
    for cached in (x86_cpus.cpu, registry.host):
        cached.cache_clear()


@pytest.mark.slow
@pytest.mark.skipif("avx512f" not in this_machine.host_flags(), reason="the machine has no AVX-512 to do without")
@EACH
def test_chapter_with_avx2_alone(chapter: Path, avx2_alone: None) -> None:
    assert registry.host().isa.vector_bits == 256
    check(chapter)
