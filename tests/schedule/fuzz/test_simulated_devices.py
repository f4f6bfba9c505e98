"""A simulator of OpenCL devices finds no race, and no access outside of a buffer (Price and McIntosh-Smith, "Oclgrind", 2015)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.schedule.fuzz.test_grids import NEEDED
from tests.support.devices import EXPECTED

DRIVERS = [
    Path(folder) / "oclgrind/liboclgrind-rt-icd.so"
    for folder in ("/usr/lib", "/usr/lib/x86_64-linux-gnu", "/usr/local/lib")
]
DRIVER = next((d for d in DRIVERS if d.exists()), None)
RACE = "data race"
CHECKS = {
    "OCLGRIND_DATA_RACES": "1",
    "OCLGRIND_UNINITIALIZED": "1",
    "OCLGRIND_CHECK_API": "1",
    "OCLGRIND_BUILD_OPTIONS": "-cl-opt-disable",  # of optimised kernels it computes some wrong, and knows not all instructions
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        DRIVER is None and not os.environ.get(EXPECTED), reason="there is no Oclgrind: apt install oclgrind"
    ),
]


def simulated(folder: Path, *arguments: object) -> tuple[str, str]:
    """Runs a program on the simulator alone; returns what it prints, and what the simulator has to say."""
    log = folder / "simulator.txt"
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**os.environ, **CHECKS, "OCLGRIND_LOG": str(log), "OCL_ICD_VENDORS": str(DRIVER)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, log.read_text()


@pytest.mark.parametrize("part", range(5))
def test_a_sample_of_schedules(part: int, tmp_path: Path) -> None:
    cases = range(200 + 10 * part, 210 + 10 * part)
    printed, told = simulated(tmp_path, "-m", "tests.schedule.fuzz.on_opencl", "--cases", *cases)
    assert told == ""
    assert int(printed.split()[0]) > 5


@pytest.mark.parametrize("number", NEEDED)
def test_a_missing_barrier_is_a_race(number: int, tmp_path: Path) -> None:
    arguments = "-m", "tests.schedule.fuzz.on_opencl", "--without-barrier", 0, "--cases", number
    assert RACE in simulated(tmp_path, *arguments)[1]


MODEL = """
from tests.driver.device.test_models_on_device import MODELS, check_on
check_on("opencl", MODELS["{name}"])
print("right")
"""


@pytest.mark.parametrize("name", ["digits", "lstm", "bert"])
def test_models(name: str, tmp_path: Path) -> None:
    assert simulated(tmp_path, "-c", MODEL.format(name=name)) == ("right\n", "")
