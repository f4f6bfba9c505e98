"""A saved model for a device is refused by programs in C, in words."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.export.conftest import EXAMPLE, RT, STRICT, Library, build
from tests.models import mlp

from weft.driver.build import build as compile_model
from weft.runtime.artifact import write_artifact


@pytest.mark.parametrize("target", ["opencl", "opencl+cpu"])
def test_a_model_for_a_device_is_refused_in_c(target: str, library: Library, tmp_path: Path) -> None:
    """So is one some of whose kernels the processor runs."""
    write_artifact(compile_model(mlp(), target, cache=None).package, tmp_path / "m.weft")
    program = build("gcc", tmp_path / "run", "-std=c99", *STRICT, f"-I{RT}", EXAMPLE, library("gcc", "-std=c99"))
    done = subprocess.run([program, tmp_path / "m.weft", "1"], input=b"", capture_output=True, check=False)
    assert done.returncode != 0
    assert f"its kernels are for {target}, and only Python launches those of devices".encode() in done.stderr
