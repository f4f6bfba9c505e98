"""What a process holds while it compiles, and after."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from tests.models import mlp

WIDTH, LAYERS = 2048, 6
WEIGHTS = 4 * WIDTH * WIDTH * LAYERS

COMPILER = 120
"""Megabytes that compiling takes besides weights."""

SCRIPT = """
import json, sys
import numpy as np
import weft
import weft.driver.build
from weft.codegen import backend_of
from weft.driver.cache.code_cache import default_cache
from weft.driver.calibrate import target_here
from weft.frontends.onnx.importer import from_onnx  # with ONNX's package, and all operators

backend_of(target_here("cpu", None, default_cache()))  # LLVM is loaded, and the processor is known

def held(what):
    line = next(s for s in open("/proc/self/status") if s.startswith(what))
    return int(line.split()[1]) << 10

def parts():  # bytes of each kind of memory, by what it is a map of
    found, name = {}, ""
    for line in open("/proc/self/smaps"):
        first = line.split()[0]
        if not first.endswith(":"):
            name = line.split(maxsplit=5)[5].strip() if len(line.split()) > 5 else ""
        elif first == "Rss:":
            found[name] = found.get(name, 0) + (int(line.split()[1]) << 10)
    return found

before = held("VmRSS")
model = weft.compile(sys.argv[1], cache=sys.argv[2] == "cache")
after = held("VmRSS")
result = {"before": before, "peak": held("VmHWM"), "after": after, "file": parts().get(sys.argv[1], 0)}
model(np.ones((1, model.inputs[0].shape[1]), np.float32))
print(json.dumps(result))
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "large.onnx"
    path.write_bytes(mlp(1, (WIDTH,) * (LAYERS + 1)).SerializeToString())
    return path


@pytest.fixture(scope="module")
def beside(model: Path) -> Path:
    """The same model with its weights in a file beside it."""
    path = model.with_name("beside.onnx")
    onnx.save(onnx.load(model), path, save_as_external_data=True, location="weights.bin", size_threshold=1024)
    return path


def measure(model: Path, cache: str) -> dict[str, int]:
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(model), cache], capture_output=True, text=True, check=True)
    found: dict[str, int] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("where", ["model", "beside"])
def test_weights_are_held_once_and_compiling_takes_little_more(where: str, request: pytest.FixtureRequest) -> None:
    """The packed weights, those that are read at a time, and the compiler: a model of gigabytes takes hardly more than itself."""
    found = measure(request.getfixturevalue(where), "fresh")
    assert found["peak"] <= found["before"] + 1.3 * WEIGHTS + (COMPILER << 20)
    assert found["after"] <= found["before"] + WEIGHTS + (56 << 20)
    assert found["file"] == 0


def test_a_known_model_takes_its_weights_and_little_more(model: Path) -> None:
    measure(model, "cache")
    found = measure(model, "cache")
    assert found["peak"] <= found["before"] + WEIGHTS + (10 << 20)
    assert found["file"] == 0
