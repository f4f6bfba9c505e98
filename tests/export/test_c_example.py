"""examples/c/run.c, built by one line, computes bit for bit what the compiling process does."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.export.conftest import EXAMPLE, OPEN, RT, SANITIZERS, STRICT, Library, Saved, Saver, build, compilers
from tests.models import BUILDERS


def run(program: Path, model: Saved, *more: str) -> subprocess.CompletedProcess[bytes]:
    command: list[str | Path] = [program, model.path, str(OPEN), *more]
    return subprocess.run(command, input=model.input_bytes, capture_output=True, check=False)


def build_example(library: Library, cc: str, folder: Path, *more: str) -> Path:
    flags = ["-std=c99", *more]
    return build(cc, folder / "run", *flags, *STRICT, f"-I{RT}", EXAMPLE, library(cc, *flags))


@compilers
def test_it_runs_any_model(cc: str, saved: Saver, library: Library, tmp_path: Path) -> None:
    program = build_example(library, cc, tmp_path)
    for name in BUILDERS:
        done = run(program, saved(name), "2")
        assert done.returncode == 0, done.stderr
        assert done.stdout == saved(name).output_bytes, name
        assert done.stderr.endswith(b" ms\n")


@pytest.mark.slow
@compilers
@pytest.mark.parametrize("sanitizer", SANITIZERS)
def test_it_is_clean_under_a_sanitizer(cc: str, sanitizer: str, saved: Saver, library: Library, tmp_path: Path) -> None:
    program = build_example(library, cc, tmp_path, *SANITIZERS[sanitizer])
    for name in BUILDERS:
        assert run(program, saved(name)).stdout == saved(name).output_bytes


def test_what_it_says_of_errors(saved: Saver, library: Library, tmp_path: Path) -> None:
    program = build_example(library, "gcc", tmp_path)
    mlp = saved("mlp")
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, f"usage: {program} MODEL [OPEN [TIMES]] < inputs > outputs\n")
    done = subprocess.run([program, "none"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "error: there is no such file\n")
    done = subprocess.run([program, mlp.path, "3"], input="", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "error: there are too few inputs\n")
    done = subprocess.run([program, mlp.path, "0"], input="", capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith("error: input x: dimension 0 is 0, but it must be at least 1\n")
