"""The package weft-runtime: built, installed with NumPy alone, and used."""

from __future__ import annotations

import email
import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from tests import models

import weft
from weft.native import header_files, source_files

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / "src" / "weft" / "native"
pytestmark = pytest.mark.slow  # a compiler runs, and build tools are fetched

USE = """
import sys
import numpy as np
import weft

path, feed = sys.argv[1], dict(np.load(sys.argv[2]))
want = [feed.pop("want0"), feed.pop("want1")]
made = weft.load(path)(**feed)
session = weft.InferenceSession(path, providers=weft.get_available_providers())
assert [i.name for i in session.get_inputs()] == list(feed)
for outputs in (made, session.run(None, feed)):
    assert all(np.array_equal(a, b) for a, b in zip(outputs, want, strict=True))
loaded = {name.partition(".")[0] for name in sys.modules}
assert not loaded & {"onnx", "llvmlite", "typer", "rich", "ml_dtypes", "google"}, loaded
for act in (
    lambda: weft.compile, lambda: weft.backend, lambda: weft.nonesuch,
    lambda: weft.InferenceSession("m.onnx"), lambda: weft.load(sys.argv[3]),
):
    try:
        act()
    except (AttributeError, weft.WeftError) as error:
        print(str(error).partition(";")[0])
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--quiet",
        "--wheel-dir",
        out,
        ROOT / "packaging" / "runtime",
    ]
    subprocess.run(list(map(str, command)), check=True)
    (made,) = out.glob("weft_runtime-*.whl")
    return made


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has the wheel and NumPy, and nothing else."""
    home = tmp_path_factory.mktemp("home") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    install = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        home / "bin" / "python",
        "install",
        "--no-deps",
        "--quiet",
        wheel,
    ]
    subprocess.run(list(map(str, install)), check=True)
    (packages,) = home.glob("lib/python*/site-packages")
    spec = importlib.util.find_spec("numpy")
    assert spec is not None
    assert spec.origin is not None
    for name in ("numpy", "numpy.libs"):
        source = Path(spec.origin).parents[1] / name
        if source.exists():
            (packages / name).symlink_to(source)
    return home / "bin" / "python"


def test_it_is_small_and_needs_numpy_alone(wheel: Path) -> None:
    assert wheel.stat().st_size < 1_000_000
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = [n for n in names if n.endswith(".dist-info/METADATA")]
        facts = email.message_from_bytes(archive.read(metadata))
    needed = [r for r in facts.get_all("Requires-Dist", []) if "extra ==" not in r]
    assert needed == ["numpy>=2.0"]
    assert facts["Version"] == weft.__version__
    folders = {n.split("/")[1] for n in names if n.startswith("weft/")}
    assert folders == {"__init__.py", "native", "runtime", "support"}
    assert not [n for n in names if n.endswith((".cpp", ".pyc", "CMakeLists.txt"))]
    assert {f"weft/native/{p.relative_to(NATIVE)}" for p in [*header_files(), *source_files()]} <= set(names)
    assert {"weft/native/rt/weft.h", "weft/native/rt/weft_abi.h", "weft/native/cpp/weft.hpp"} <= set(names)


def test_it_runs_a_saved_model(python: Path, tmp_path: Path) -> None:
    proto = models.lstm_step("batch")
    feed = models.random_inputs(proto)
    model = weft.compile(proto)
    model.save(tmp_path / "m.weft")
    want = {f"want{k}": y for k, y in enumerate(model.run(list(feed.values())))}
    np.savez(tmp_path / "feed.npz", **feed, **want)  # type: ignore[arg-type]
    weft.compile(halves()).save(tmp_path / "halves.weft")
    command = [python, "-c", USE, tmp_path / "m.weft", tmp_path / "feed.npz", tmp_path / "halves.weft"]
    done = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True, cwd=tmp_path)
    said = done.stdout.splitlines()
    assert said[:2] == [
        "weft.compile needs the compiler, and only weft-runtime is installed",
        "weft.backend needs the compiler, and only weft-runtime is installed",
    ]
    assert said[2].startswith("module 'weft' has no attribute 'nonesuch'")
    assert said[3:] == [
        "this is no model saved by Weft, and there is no compiler here for others",
        "  hint: compile it where weft is installed: weft compile MODEL.onnx -o MODEL.weft",
        "NumPy has no bfloat16 without the package ml_dtypes",
        "  hint: pip install ml_dtypes",
    ]


CPP = """
#include <cstdio>
#include "weft.hpp"
int main(int, char **argv) {
  weft::Model model = weft::Model::load(argv[1]);
  std::printf("%s\\n", model.note("weft"));
}
"""


def test_programs_in_c_and_cpp_find_the_runtime(python: Path, tmp_path: Path) -> None:
    proto = models.mlp()
    x = models.random_inputs(proto)["x"]
    model = weft.compile(proto)
    model.save(tmp_path / "m.weft")
    (tmp_path / "main.cpp").write_text(CPP)
    find = f"{python} -m weft.native"
    example = ROOT / "examples" / "c" / "run.c"
    for command in (
        f"cc -std=c99 -O2 -Wall -Wextra -Werror -pthread $({find} --includes --sources) {example} -o run",
        f"cc -std=c99 -O2 -c $({find} --includes --sources)",
        f"c++ -std=c++17 -O2 -Wall -Wextra -Werror -pthread $({find} --includes) main.cpp *.o -o main",
    ):
        subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    done = subprocess.run(
        [tmp_path / "run", "m.weft", "3"], input=x.tobytes(), capture_output=True, check=True, cwd=tmp_path
    )
    assert done.stdout == np.asarray(model(x)).tobytes()
    said = subprocess.run([tmp_path / "main", "m.weft"], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert said.stdout == f"{weft.__version__}\n"


def halves() -> onnx.ModelProto:
    """Returns a model that takes and makes bfloat16."""
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.BFLOAT16, [4]) for name in "xy")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Neg", ["x"], ["y"])], "halves", [x], [y])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
