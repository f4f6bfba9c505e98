"""examples/c/run.c, built by one line, computes bit for bit what the compiling process does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.driver.results.test_guards import CASES as INDICES
from tests.export.conftest import EXAMPLE, OPEN, RT, SANITIZERS, STRICT, Library, Saved, Saver, build, compilers
from tests.frontends.onnx.nodes import float_inputs, model_of, node
from tests.models import BUILDERS

import weft


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
    done = subprocess.run([program, mlp.path, "-1"], input="", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "error: an input can't be so large\n")


def many(count: int) -> onnx.ModelProto:
    """Returns a model of so many inputs, x0 to ..., and as many outputs, each an input with its sign changed."""
    nodes = [node("Neg", f"x{k}", f"y{k}") for k in range(count)]
    return model_of(nodes, float_inputs(**{f"x{k}": (1,) for k in range(count)}), [f"y{k}" for k in range(count)])


def test_more_tensors_than_anybody_counts_on(library: Library, tmp_path: Path) -> None:
    program = build_example(library, "gcc", tmp_path, *SANITIZERS["address"])
    weft.compile(many(300), opt_level=0).save(tmp_path / "many.weft")
    x = np.arange(300, dtype=np.float32)
    done = subprocess.run([program, tmp_path / "many.weft"], input=x.tobytes(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.frombuffer(done.stdout, np.float32), -x)


def test_the_commands_of_its_page(tmp_path: Path) -> None:
    """Each block of shell commands of examples/c/README.md runs as it stands, in the project's folder."""
    root = EXAMPLE.parents[2]
    for name in ("examples", "benchmarks"):
        (tmp_path / name).symlink_to(root / name)
    (tmp_path / "main.c").write_text(MAIN)
    blocks = re.findall(r"^```sh\n(.*?)^```", (EXAMPLE.parent / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for block in blocks:
        script = f"set -eo pipefail\n{block}"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=tmp_path,
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        if "od -f" in block:
            assert len(done.stdout.split()) >= 10, "the scores of ten digits"
    assert (tmp_path / "digits.so").exists()
    assert subprocess.run([tmp_path / "main"], check=False).returncode == 0


MAIN = """#include "model.h"
int main(void) {
  weft_error error;
  weft_model *model;
  if (digits_load(NULL, &model, &error) != WEFT_OK) return 1;
  weft_model_free(model);
  return 0;
}
"""


def test_an_index_outside(library: Library, tmp_path: Path) -> None:
    made, right, wrong, message = INDICES["symbolic sizes"]
    weft.compile(made).save(tmp_path / "model.weft")
    program = build_example(library, "gcc", tmp_path)
    command: list[str | Path] = [program, tmp_path / "model.weft", str(len(wrong[0]))]
    wide = [wrong[0], wrong[1][:2]]
    done = subprocess.run(command, input=b"".join(x.tobytes() for x in wide), capture_output=True, check=False)
    assert done.returncode == 1
    assert done.stderr.decode().endswith(f"error: {message}\n")
    inside = b"".join(x.tobytes() for x in (right[0][:2], right[1] * 0))
    done = subprocess.run(command, input=inside, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, right[0][[0, 0]].tobytes())


def test_an_empty_batch(saved: Saver, library: Library, tmp_path: Path) -> None:
    program = build_example(library, "gcc", tmp_path)
    done = subprocess.run([program, saved("mlp").path, "0"], input=b"", capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"")
