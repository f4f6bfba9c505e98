"""The machine's limits: in order, and of one core as of all."""

from __future__ import annotations

import re

import pytest

from weft.codegen.llvm.object_code import assembly
from weft.driver.measure import limits
from weft.driver.measure.bandwidth import ReadBandwidth
from weft.driver.measure.limits import Quantity, measure_limits, on_all_cores
from weft.support.errors import InputError
from weft.targets import host


def test_the_loop_reads_and_does_nothing_else() -> None:
    text = assembly(ReadBandwidth().function.flat, host())
    loops = re.findall(r"^(\.L\w+):[^\n]*\n((?:\t[^\n]*\n)+)", text, re.M)
    (body,) = [b for label, b in loops if b.count("or") >= 4 and re.search(rf"\tj\w+\t{re.escape(label)}\b", b)]
    lines = [x.strip() for x in body.splitlines() if not x.strip().startswith((".", "#"))]
    reading = [x for x in lines if re.match(r"v?p?or|vor", x)]
    assert len(reading) == 4, lines
    if host().isa.fma:  # before AVX, operands in memory had to be aligned: they are loaded before
        assert all("(" in x or "[" in x for x in reading), "each reads memory"
    assert len(lines) <= (9 if host().isa.fma else 13), lines


def test_nearer_memory_is_faster() -> None:
    reading, target = ReadBandwidth(), host()
    near, far = (
        max(reading.rate(size, repeats=3) for _ in range(3)) for size in (target.caches.l1 // 2, 8 * target.caches.l2)
    )
    assert near > 1.5 * far > 0


def test_too_small_a_buffer_is_refused() -> None:
    with pytest.raises(InputError, match="50 bytes are too few to read"):
        ReadBandwidth().rate(50)


def test_all_quantities_are_measured_on_one_core_and_on_all(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = iter(range(100))
    made = [Quantity("a", "GB/s", lambda: float(next(rates)), 64), Quantity("b", "GFLOP/s", lambda: 5.0)]
    monkeypatch.setattr(limits, "arithmetic", lambda target: made[1:])
    monkeypatch.setattr(limits, "memory", lambda target: made[:1])
    monkeypatch.setattr(limits, "on_all_cores", lambda rate: 2 * rate())
    b, a = measure_limits(rounds=2)
    assert (b.name, b.one_core, b.all_cores, b.nbytes) == ("b", 5.0, 10.0, 0)
    assert (a.name, a.one_core, a.all_cores, a.nbytes) == ("a", 2.0, 6.0, 64)


def test_arithmetic_is_of_every_width_the_machine_has() -> None:
    names = [q.name for q in limits.arithmetic(host())]
    assert f"f32 multiply-add, {host().isa.vector_bits}-bit vectors" in names
    assert len(names) == len(set(names))


def test_each_core_counts() -> None:
    assert on_all_cores(lambda: 1.5) == 1.5 * host().cores
