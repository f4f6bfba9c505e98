"""The machine's limits, as generated code measures them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from weft.codegen.llvm.object_code import assembly
from weft.driver.measure.matrix_peak import MatrixPeak
from weft.driver.measure.peak import Peak, fma_peak
from weft.support.dtypes import DType, bf16, f32, f64, u8
from weft.support.errors import InputError, LoweringError
from weft.targets import can_run, cpu, host

ROOT = Path(__file__).resolve().parents[3]
WIDE = host().has("avx512vnni") and host().has("avx512bf16")
INSTRUCTIONS = {f32: "vfmadd", u8: "vpdpbusd", bf16: "vdpbf16ps"}


def innermost_loop(peak: Peak) -> list[str]:
    """Returns the instructions of the one loop that is a jump back to its own beginning."""
    text = assembly(peak.function.flat, host())
    found: list[str] = []
    for label, body in re.findall(r"^(\.L\w+):[^\n]*\n((?:\t[^\n]*\n)+)", text, re.M):
        if any(f in body for f in INSTRUCTIONS.values()) and re.search(rf"\tj\w+\t{re.escape(label)}\b", body):
            found = [line.strip() for line in body.splitlines() if not line.strip().startswith((".", "#"))]
    return found


@pytest.mark.parametrize("dtype", [f32, *([u8, bf16] if WIDE else [])], ids=str)
def test_the_loop_has_nothing_but_its_instruction(dtype: DType) -> None:
    if not host().isa.fma:
        pytest.skip("a multiply-add is two instructions")
    loop = innermost_loop(Peak(dtype))
    sums = [x for x in loop if x.startswith(INSTRUCTIONS[dtype])]
    assert len(sums) >= 12
    assert not any("(" in x or "[" in x for x in sums), "no operand is in memory"
    assert len(loop) - len(sums) <= 4, loop


@pytest.mark.skipif(not host().has("amx-bf16"), reason="the machine has no matrix registers")
def test_products_of_tiles_are_the_fastest() -> None:
    assert MatrixPeak(bf16, host()).rate() > 2 * fma_peak()
    with pytest.raises(LoweringError, match="no matrix registers for u8"):
        MatrixPeak(u8, cpu("avx512").having(features=()))


def test_more_repeats_find_no_lower_peak() -> None:
    assert fma_peak(repeats=20) >= 0.8 * fma_peak(repeats=1) > 0


@pytest.mark.skipif(not can_run(cpu("avx2")), reason="the machine has no AVX2")
def test_what_a_machine_lacks_has_no_peak() -> None:
    with pytest.raises(LoweringError, match="no dot product of bf16"):
        Peak(bf16, cpu("avx2"))
    with pytest.raises(InputError, match="no peak is known for f64"):
        Peak(f64)


@pytest.mark.slow
@pytest.mark.timed
@pytest.mark.skipif(not WIDE or shutil.which("cc") is None, reason="needs AVX-512 with VNNI and BF16, and a C compiler")
def test_the_peaks_are_those_of_an_independent_program(tmp_path: Path) -> None:
    program = tmp_path / "peak"
    source = ROOT / "benchmarks" / "peak.c"
    subprocess.run(["cc", "-O2", "-march=native", "-pthread", source, "-o", program], check=True)
    theirs: dict[str, float] = {}
    ours: dict[str, float] = {}
    for _ in range(12):  # in turn, and the best of each: whatever else the machine does only ever lowers a rate
        printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
        found = re.findall(r"^(fp32|bf16|int8) \w+ zmm \w+/s: 1c (\S+)", printed, re.M)
        theirs = {name: max(float(rate), theirs.get(name, 0.0)) for name, rate in found}
        rates = {"fp32": fma_peak(), "bf16": Peak(bf16).rate(repeats=150), "int8": Peak(u8).rate(repeats=150)}
        ours = {name: max(rate, ours.get(name, 0.0)) for name, rate in rates.items()}
        assert set(theirs) == set(ours)
        if not (apart := _apart(ours, theirs)):
            break  # until then one of the two may not have had the machine at its fastest yet
    assert not apart, (ours, theirs)


def _apart(ours: dict[str, float], theirs: dict[str, float]) -> list[str]:
    """The rates of ours that are lower than theirs, or higher than what the ports allow, which all three types share."""
    most = {"fp32": theirs["fp32"], "bf16": 2 * theirs["fp32"], "int8": 4 * theirs["fp32"]}
    return [name for name, rate in ours.items() if not 0.95 * theirs[name] <= rate <= 1.05 * most[name]]
