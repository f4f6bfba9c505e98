"""How long it takes until a model runs: compiled with nothing known of it, and found in the cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from tests.support.yardstick import slowness

from weft.cli.demo_models import resnet18

COLD, CACHED = 5.0, 0.5
"""Seconds that ResNet-18 may take in a new process, imports included, on the machine of `tests.support.yardstick`."""

ATTEMPTS = 3
COMPILE = """
import sys, time
begin = time.perf_counter()
import weft
weft.compile(sys.argv[1])
print(time.perf_counter() - begin, time.process_time())
"""


def seconds(model: Path, cache: Path) -> float:
    """Compiles *model* in a process of its own; returns how long it takes by the wall.

    A process that others keep from running takes longer than the processor works for it; then that counts, which is no less
    than the wall would show on a core of its own.
    """
    asked = [sys.executable, "-c", COMPILE, str(model)]
    environment = {**os.environ, "WEFT_CACHE_DIR": str(cache)}
    done = subprocess.run(asked, check=True, capture_output=True, text=True, env=environment)
    return min(map(float, done.stdout.split()))


@pytest.mark.slow
@pytest.mark.timed
def test_resnet18(tmp_path: Path) -> None:
    model = tmp_path / "resnet18.onnx"
    onnx.save(resnet18(), model)
    caches = [tmp_path / f"cache{n}" for n in range(ATTEMPTS)]
    cold, cached = (min([seconds(model, cache) for cache in caches]) for _ in ("cold", "cached"))
    unit = slowness()
    assert cold <= COLD * unit
    assert cached <= CACHED * unit
