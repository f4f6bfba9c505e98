"""Whole models as C source: what `cc` makes of them computes what LLVM's code does, without a warning or a fault."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from tests.codegen.c.networks import DIGITS, NETWORKS, OTHERS

import weft
from weft.cli.main import main
from weft.driver.compile import compile_package
from weft.driver.export.c_header import C_TYPES
from weft.driver.export.c_source import export_c
from weft.driver.options import CompileOptions
from weft.runtime.model import Model
from weft.runtime.package import Package
from weft.support.errors import InputError, ToolchainError
from weft.targets import parse_target

Array = np.ndarray[Any, Any]
STRICT = ("-std=c99", "-Wall", "-Werror")
TARGETS = ("c", "c-vector")
FIXED = {"digits": {"batch": 3}}

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


def package_of(model: onnx.ModelProto | str, target: str, shapes: dict[str, int] | None = None) -> Package:
    return compile_package(model, parse_target(target), CompileOptions(), shapes)


def inputs_of(model: Model, seed: int = 0) -> list[Array]:
    rng = np.random.default_rng(seed)
    made = []
    for spec in model.inputs:
        shape = [int(d) for d in spec.shape]
        values = rng.standard_normal(shape) if spec.dtype.is_float else rng.integers(0, 5, shape)
        made.append(values.astype(spec.dtype.numpy))
    return made


def outputs_of(model: Model, inputs: Sequence[Array]) -> list[Array]:
    made = model(*inputs)
    return [np.asarray(y) for y in (made if isinstance(made, tuple) else (made,))]


def program(package: Package, name: str) -> str:
    """Returns a C program that reads a model's inputs from a file, and writes its outputs."""
    sides = [("in", package.inputs), ("out", package.outputs)]
    arrays = [(f"{side}{n}", s) for side, specs in sides for n, s in enumerate(specs)]
    declared = [
        f"static {C_TYPES[s.dtype.name]} {n}[{max(1, int(np.prod([int(d) for d in s.shape])))}];" for n, s in arrays
    ]
    names = [n for n, _ in arrays]
    read = [f"  if (fread({n}, 1, sizeof {n}, stdin) != sizeof {n}) return 2;" for n in names if n.startswith("in")]
    write = [f"  fwrite({n}, 1, sizeof {n}, stdout);" for n in names if n.startswith("out")]
    return "\n".join(
        [
            "#include <stdio.h>",
            f'#include "{name}.h"',
            *declared,
            "int main(void) {",
            *read,
            f"  int32_t status = {name}_run({', '.join(names)});",
            f'  if (status != 0) return fprintf(stderr, "%s", {name}_explain()), 3;',
            *write,
            "  return 0;",
            "}",
            "",
        ]
    )


def run_source(package: Package, name: str, folder: Path, inputs: Sequence[Array], *flags: str) -> list[Array]:
    """Builds the C source of a model with a program around it, and returns what that writes."""
    export_c(package, folder / f"{name}.c")
    (folder / "main.c").write_text(program(package, name))
    command = ["cc", *STRICT, *flags, "main.c", f"{name}.c", "-lm", "-o", "main"]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (built.returncode, built.stderr) == (0, "")
    done = subprocess.run(
        folder / "main", input=b"".join([x.tobytes() for x in inputs]), capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    found, at = [], 0
    for s in package.outputs:
        shape = [int(d) for d in s.shape]
        count = int(np.prod(shape)) * s.dtype.bytes
        found.append(np.frombuffer(done.stdout[at : at + count], s.dtype.numpy).reshape(shape))
        at += count
    assert at == len(done.stdout)
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", [*NETWORKS, *[pytest.param(n, marks=pytest.mark.slow) for n in OTHERS]])
def test_a_program_around_the_source_computes_the_same(name: str, target: str, tmp_path: Path) -> None:
    model, shapes = {**NETWORKS, **OTHERS}[name](), FIXED.get(name)
    reference = weft.compile(model, shapes=shapes)
    inputs = inputs_of(reference)
    found = run_source(package_of(model, target, shapes), name, tmp_path, inputs, "-O2")
    for ours, theirs in zip(found, outputs_of(reference, inputs), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NETWORKS)
def test_nothing_is_undefined_or_out_of_bounds(name: str, target: str, tmp_path: Path) -> None:
    sanitizers = ("-fsanitize=undefined,address", "-fno-sanitize-recover=all")
    model, shapes = NETWORKS[name](), FIXED.get(name)
    reference = weft.compile(model, shapes=shapes)
    inputs = inputs_of(reference, seed=1)
    found = run_source(package_of(model, target, shapes), name, tmp_path, inputs, "-O1", "-g", *sanitizers)
    for ours, theirs in zip(found, outputs_of(reference, inputs), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NETWORKS)
def test_a_call_goes_through_the_compiler(name: str, target: str, tmp_path: Path) -> None:
    model = NETWORKS[name]()
    made = weft.compile(model, target=target)
    reference = weft.compile(model, shapes=FIXED.get(name))
    inputs = inputs_of(reference)
    for ours, theirs in zip(outputs_of(made, inputs), outputs_of(reference, inputs), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)
    made.save(tmp_path / "saved.weft")
    for ours, again in zip(
        outputs_of(made, inputs), outputs_of(weft.load(tmp_path / "saved.weft"), inputs), strict=True
    ):
        np.testing.assert_array_equal(ours, again)


def test_digits_are_read() -> None:
    heldout = np.load(DIGITS / "heldout.npz")
    guesses = np.asarray(weft.compile(DIGITS / "digits.onnx", target="c")(heldout["images"])).argmax(1)
    assert np.mean(guesses == heldout["labels"]) >= 0.975


def test_scalar_source_has_no_extension_of_c99(tmp_path: Path) -> None:
    for name, make in NETWORKS.items():
        export_c(package_of(make(), "c", FIXED.get(name)), tmp_path / f"{name}.c")
        flags = ("-std=c99", "-pedantic-errors", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-c")
        done = subprocess.run(
            ["cc", *flags, f"{name}.c", "-o", "x.o"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        missing = subprocess.run(
            ["nm", "-u", "x.o"], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout.split()
        assert set(missing) - {"U"} <= {"memcpy", "memset", "sqrtf", "_GLOBAL_OFFSET_TABLE_"}, "no library"


def test_large_weights_are_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.driver.export.c_source.MOST_IN_SOURCE", 1000)
    package = package_of(NETWORKS["mlp"](), "c")
    made = export_c(package, tmp_path / "mlp.c")
    assert [p.name for p in made] == ["mlp.c", "mlp.h", "mlp.bin"]
    assert "void mlp_use_weights(const void *bytes);" in made[1].read_text()
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "mlp.h"\nstatic uint64_t w[100000]; static float x[48], y[20];\n'
        "int main(void) {\n  if (mlp_run(x, y) != -1) return 1;\n"
        '  FILE *f = fopen("mlp.bin", "rb"); if (fread(w, 1, sizeof w, f) == 0) return 2;\n'
        "  mlp_use_weights(w);\n  return mlp_run(x, y);\n}\n"
    )
    built = subprocess.run(["cc", "-std=c99", "main.c", "mlp.c", "-o", "main"], cwd=tmp_path, check=False)
    assert built.returncode == 0
    assert subprocess.run([tmp_path / "main"], cwd=tmp_path, check=False).returncode == 0


def test_the_command_writes_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(tmp_path / "net.c")
    onnx.save(NETWORKS["mlp"](), tmp_path / "mlp.onnx")
    monkeypatch.setattr("sys.argv", ["weft", "compile", str(tmp_path / "mlp.onnx"), "-o", output, "--target", "c"])
    with pytest.raises(SystemExit) as done:
        main()
    assert done.value.code in (0, None)
    assert "for c, in " in capsys.readouterr().out
    assert "int32_t net_run(const float *x, float *y);" in (tmp_path / "net.h").read_text()


def test_code_of_another_target_is_no_source(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError) as error:
        export_c(package_of(NETWORKS["mlp"](), "cpu"), tmp_path / "net.c")
    assert (
        str(error.value)
        == f"{tmp_path / 'net.c'} is to be C, and the model was compiled for cpu\n  hint: use --target c"
    )


def test_open_sizes_have_no_static_memory(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        export_c(package_of(NETWORKS["digits"](), "c"), tmp_path / "net.c")
    assert str(error.value) == (
        "C source has memory of fixed size, but the dimension batch is dynamic\n  hint: give sizes, such as --shape batch=1"
    )


def test_without_a_compiler_source_is_written_and_nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert export_c(package_of(NETWORKS["mlp"](), "c"), tmp_path / "net.c")
    with pytest.raises(ToolchainError) as error:
        weft.compile(NETWORKS["mlp"](), target="c")
    assert str(error.value) == (
        "code for 'c' runs here only where there is a C compiler, and there is none\n"
        "  hint: apt install gcc, or the like; or use `weft compile MODEL -o FILE`"
    )


def test_a_compiler_that_goes_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.codegen.c.compiler.shutil.which", lambda name: None)
    monkeypatch.setattr("weft.driver.check_target.can_run", lambda target: True)
    with pytest.raises(ToolchainError) as error:
        weft.compile(NETWORKS["mlp"](), target="c")
    assert str(error.value) == (
        "generated C runs here only where there is a C compiler, and there is none\n"
        "  hint: apt install gcc, or the like; or write the source with `weft compile MODEL -o FILE.c --target c`"
    )
