"""The C++17 wrapper, header only, with exceptions and without."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.export.conftest import HERE, NATIVE, RT, RT_SOURCES, SANITIZERS, STRICT, Saver, compilers
from tests.export.test_c_api import check


def build_wrapper(cc: str, folder: Path, *flags: str) -> Path:
    """Compiles the runtime as C and the program as C++, and links them."""
    both = [*STRICT, "-Wpedantic", f"-I{RT}", *[f for f in flags if f.startswith("-fsan")]]
    objects = [folder / f"{source.stem}.o" for source in RT_SOURCES]
    commands = [[cc, "-std=c99", *both, "-c", s, "-o", o] for s, o in zip(RT_SOURCES, objects, strict=True)]
    cxx = {"gcc": "g++", "clang": "clang++"}[cc]
    more = [*both, *flags, f"-I{NATIVE / 'cpp'}", HERE / "wrapper.cpp", *objects]
    commands.append([cxx, "-std=c++17", *more, "-pthread", "-o", folder / "wrapper"])
    for command in commands:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
    return folder / "wrapper"


@compilers
@pytest.mark.parametrize("flags", [[], ["-fno-exceptions", "-fno-rtti"]], ids=["exceptions", "none"])
def test_the_wrapper(cc: str, flags: list[str], saved: Saver, tmp_path: Path) -> None:
    check(build_wrapper(cc, tmp_path, *flags), saved)


@pytest.mark.slow
@compilers
@pytest.mark.parametrize("sanitizer", SANITIZERS)
def test_the_wrapper_under_a_sanitizer(cc: str, sanitizer: str, saved: Saver, tmp_path: Path) -> None:
    check(build_wrapper(cc, tmp_path, *SANITIZERS[sanitizer]), saved)
