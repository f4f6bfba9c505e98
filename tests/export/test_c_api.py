"""weft.h from C: every function, in strict C99 and C11, by each compiler, and under the sanitizers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.export.conftest import HERE, RT, SANITIZERS, STRICT, Library, Saver, build, compilers


def check(program: Path, saved: Saver) -> None:
    """The program computes what Python does, and finds nothing amiss."""
    mlp = saved("mlp")
    done = subprocess.run([program, mlp.path], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    x = ((np.arange(5 * 24) * 37 % 101).astype(np.float32) / np.float32(50) - np.float32(1)).reshape(5, 24)
    assert done.stdout == np.asarray(mlp.model(x)).tobytes()


@pytest.mark.sampled(2)
@compilers
@pytest.mark.parametrize("standard", ["c99", "c11"])
def test_every_function(cc: str, standard: str, saved: Saver, library: Library, tmp_path: Path) -> None:
    flags = [f"-std={standard}", *STRICT, f"-I{RT}"]
    check(build(cc, tmp_path / "api", *flags, HERE / "api.c", library(cc, f"-std={standard}")), saved)


@pytest.mark.slow
@compilers
@pytest.mark.parametrize("sanitizer", SANITIZERS)
def test_every_function_under_a_sanitizer(
    cc: str, sanitizer: str, saved: Saver, library: Library, tmp_path: Path
) -> None:
    flags = ["-std=c99", *SANITIZERS[sanitizer]]
    runtime = library(cc, *flags)
    check(build(cc, tmp_path / "api", *flags, *STRICT, f"-I{RT}", HERE / "api.c", runtime), saved)


@compilers
def test_the_header_alone_is_c_and_cpp(cc: str, tmp_path: Path) -> None:
    for language, standard in (("c", "c99"), ("c++", "c++11")):
        source = tmp_path / f"alone.{language}"
        source.write_text('#include "weft.h"\n#include "weft.h"\nint unused = WEFT_ALIGN;\n')
        command = [cc, "-x", language, f"-std={standard}", *STRICT, "-Wpedantic", f"-I{RT}", "-c", str(source)]
        command += ["-o", "/dev/null"]
        assert subprocess.run(command, capture_output=True, text=True, check=False).stderr == ""
