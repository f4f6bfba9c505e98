"""Outputs whose sizes only a run tells, from programs in C and C++."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.helper import make_node
from tests.driver.host.ways import F32, I64, model
from tests.export.conftest import EXAMPLE, HERE, NATIVE, RT, SANITIZERS, STRICT, Library, build

import weft
from weft.driver.export.linkable import export_folder


@pytest.fixture(scope="module")
def nonzero(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a saved model of `y = NonZero(x)`."""
    proto: onnx.ModelProto = model([make_node("NonZero", ["x"], ["y"])], [("x", F32, [2, 3])], [("y", I64, [2, None])])
    path = tmp_path_factory.mktemp("late") / "nonzero.weft"
    weft.compile(proto).save(path)
    return path


def succeeds(program: Path, path: Path) -> None:
    done = subprocess.run([program, path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_in_c(nonzero: Path, library: Library, tmp_path: Path) -> None:
    flags = ["-std=c99", *STRICT, f"-I{RT}"]
    succeeds(build("gcc", tmp_path / "late", *flags, HERE / "late.c", library("gcc", "-std=c99")), nonzero)


@pytest.mark.slow
def test_in_c_under_a_sanitizer(nonzero: Path, library: Library, tmp_path: Path) -> None:
    flags = ["-std=c99", *SANITIZERS["address"]]
    program = build("gcc", tmp_path / "late", *flags, *STRICT, f"-I{RT}", HERE / "late.c", library("gcc", *flags))
    succeeds(program, nonzero)


def test_in_cpp(nonzero: Path, library: Library, tmp_path: Path) -> None:
    flags = ["-std=c++17", *STRICT, f"-I{RT}", f"-I{NATIVE / 'cpp'}"]
    succeeds(build("g++", tmp_path / "late", *flags, HERE / "late.cpp", library("gcc", "-std=c99")), nonzero)


def test_in_the_example(nonzero: Path, library: Library, tmp_path: Path) -> None:
    """The program that runs any model writes late outputs, too."""
    flags = ["-std=c99", *STRICT, f"-I{RT}"]
    program = build("gcc", tmp_path / "run", *flags, EXAMPLE, library("gcc", "-std=c99"))
    x = np.array([[1, 0, 2], [0, 0, 3]], np.float32)
    done = subprocess.run([program, nonzero], input=x.tobytes(), capture_output=True, check=False)
    assert done.returncode == 0
    assert done.stdout == np.array(np.nonzero(x)).tobytes()


def test_in_the_header_of_a_linked_model(tmp_path: Path) -> None:
    """A late output is a tensor with room for its sizes."""
    proto = model([make_node("NonZero", ["x"], ["y"])], [("x", F32, [2, 3])], [("y", I64, [2, None])])
    folder = tmp_path / "nonzero"
    export_folder(weft.compile(proto).package, folder)
    (tmp_path / "main.c").write_text(
        """#include "model.h"
int main(void) {
  float x[6] = {1, 0, 2, 0, 0, 3};
  int64_t shape[2];
  weft_tensor y = {NULL, shape, 2, WEFT_I64};
  weft_model *model;
  if (nonzero_load(NULL, &model, NULL) != WEFT_OK) return 1;
  weft_ctx *ctx = weft_acquire(model);
  if (nonzero_run(ctx, x, &y) != WEFT_OK || shape[0] != 2 || shape[1] != 3 || ((int64_t *)y.data)[5] != 2) return 2;
  weft_release(ctx);
  weft_model_free(model);
  return 0;
}
"""
    )
    parts = [tmp_path / "main.c", folder / "model.o", *sorted((folder / "weft").glob("*.c"))]
    program = build("gcc", tmp_path / "main", "-std=c99", *STRICT, f"-I{folder}", f"-I{folder / 'weft'}", *parts)
    assert subprocess.run([program], check=False).returncode == 0
