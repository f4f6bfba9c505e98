"""The C++17 wrapper, header only, with exceptions and without."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.export.conftest import HERE, NATIVE, RT, SANITIZERS, STRICT, Library, Saver, build, compilers
from tests.export.test_c_api import check


def build_wrapper(library: Library, cc: str, folder: Path, flags: Sequence[str], both: Sequence[str] = ()) -> Path:
    """Compiles the runtime as C and the program as C++, both with the flags of *both*, and links them."""
    cxx = {"gcc": "g++", "clang": "clang++"}[cc]
    more = ["-std=c++17", *STRICT, "-Wpedantic", *flags, *both, f"-I{RT}", f"-I{NATIVE / 'cpp'}"]
    return build(cxx, folder / "wrapper", *more, HERE / "wrapper.cpp", library(cc, "-std=c99", *both))


@pytest.mark.sampled(2)
@compilers
@pytest.mark.parametrize("flags", [[], ["-fno-exceptions", "-fno-rtti"]], ids=["exceptions", "none"])
def test_the_wrapper(cc: str, flags: list[str], saved: Saver, library: Library, tmp_path: Path) -> None:
    check(build_wrapper(library, cc, tmp_path, flags), saved)


@pytest.mark.slow
@compilers
@pytest.mark.parametrize("sanitizer", SANITIZERS)
def test_the_wrapper_under_a_sanitizer(cc: str, sanitizer: str, saved: Saver, library: Library, tmp_path: Path) -> None:
    check(build_wrapper(library, cc, tmp_path, (), SANITIZERS[sanitizer]), saved)
