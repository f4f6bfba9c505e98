"""Programs on processors that lack what a model needs: refused in words, never ended by an illegal instruction.

QEMU's user mode shows a program other processors, by CPUID, while the system's files still describe the real one.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.export.conftest import EXAMPLE, HERE, OPEN, RT, STRICT, Library, silently
from tests.models import mlp, random_inputs

import weft
from weft.driver.export.linkable import export_folder
from weft.native import _rt
from weft.runtime.artifact import write_artifact
from weft.runtime.package import Package
from weft.targets import LEVELS, Target, needed_flags, parse_target

QEMU = shutil.which("qemu-x86_64") or shutil.which("qemu-x86_64-static")
pytestmark = [
    pytest.mark.skipif(QEMU is None, reason="there is no QEMU for x86-64"),
    pytest.mark.skipif(_rt.MACHINE != "x86_64", reason="there is no compiler for x86-64 here"),
]

RUNS = {"qemu64": (), "Nehalem": ("sse4",), "Haswell": ("sse4", "avx2"), "max": ("sse4", "avx2")}
"""The levels that QEMU's processors have."""
HAVE = {"qemu64": "pni cx16 lahf_lm", "Nehalem": "sse4", "Haswell": "avx2", "max": "avx2"}
"""What these have of all that is needed: a level, or features."""


def machine(level: str) -> Target:
    """Returns a machine of *level* without the features beyond it that this machine may have."""
    return parse_target(f"cpu -mattr={level}").having(features=tuple(sorted(LEVELS[level].features)))


def package(level: str) -> Package:
    return weft.build(mlp(), target=machine(level)).package


def sentence(processor: str, level: str) -> str:
    """Returns what is said of a model of *level*, if *processor* does not have all that it needs."""
    needed = needed_flags(machine(level))
    known = HAVE[processor]
    there = needed_flags(machine(known)) if known in LEVELS else known.split()
    return " ".join(["this processor lacks", *[f for f in needed if f not in there]])


def run(processor: str, program: Path, *arguments: str | Path) -> tuple[int, bytes, str]:
    """Runs a program on a processor; returns its exit code, its output, and the last line of what it says."""
    command = [str(QEMU), "-cpu", processor, str(program), *map(str, arguments)]
    given = random_inputs(mlp(), {"batch": OPEN})["x"].tobytes()
    done = subprocess.run(command, input=given, capture_output=True, check=False)
    return done.returncode, done.stdout, (done.stderr.decode().splitlines() or [""])[-1]


def expected() -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.asarray(weft.compile(mlp())(random_inputs(mlp(), {"batch": OPEN})["x"]))


def check(processor: str, level: str, found: tuple[int, bytes, str], prefix: str) -> None:
    code, output, said = found
    if level in RUNS[processor]:
        assert code == 0, said
        np.testing.assert_allclose(np.frombuffer(output, np.float32), expected().ravel(), rtol=1e-5, atol=1e-5)
    else:
        assert (code, output, said) == (1, b"", f"{prefix}{sentence(processor, level)}")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("level", LEVELS)
def test_saved_models(level: str, library: Library, tmp_path: Path) -> None:
    flags = ["-std=c99", *STRICT, f"-I{RT}", "-static"]
    silently("gcc", *flags, EXAMPLE, library("gcc", "-std=c99"), "-pthread", "-o", tmp_path / "run")
    write_artifact(package(level), tmp_path / "mlp.weft")
    for processor in RUNS:
        check(processor, level, run(processor, tmp_path / "run", tmp_path / "mlp.weft", str(OPEN)), "error: ")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("level", LEVELS)
def test_linked_models(level: str, library: Library, tmp_path: Path) -> None:
    folder = tmp_path / "mlp"
    export_folder(package(level), folder)
    flags = ["-std=c99", *STRICT, f"-I{folder}", f"-I{folder / 'weft'}", "-static"]
    program = folder / "linked"
    silently(
        "gcc", *flags, HERE / "linked.c", folder / "model.o", library("gcc", "-std=c99"), "-pthread", "-o", program
    )
    for processor in RUNS:
        check(processor, level, run(processor, program), "")
