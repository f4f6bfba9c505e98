"""Loads damaged artifacts, most of them with right checksums, in a program that sanitizers watch.

python -m tests.runtime.artifacts.fuzz_load -n 50000

The artifacts are those of a network, and of a model of strings. A misstep ends the program, and so does a run in which fewer than
a tenth are loaded: all checks but the last would hide those behind them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.frontends.onnx.nodes import node
from tests.frontends.onnx.operators.test_strings import string_model
from tests.models import mlp
from tests.runtime.conftest import RT, STRICT_C, tool

import weft
from weft.native import source_files

SANITIZED = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]


def fuzz(artifact: Path, folder: Path, mutations: int) -> tuple[int, int]:
    """Returns how many mutations of an artifact were loaded and refused, by a process that notices any misstep."""
    program = folder / "fuzz"
    if not program.exists():
        sources = [Path(__file__).parent / "fuzz_load.c", *source_files()]
        tool("gcc", *STRICT_C, *SANITIZED, f"-I{RT}", *sources, "-pthread", "-o", program)
    done = subprocess.run([program, artifact, str(mutations)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    loaded, refused = map(int, done.stdout.split())
    return loaded, refused


def main(arguments: list[str]) -> int:
    """Runs the campaign; returns 1 where too few artifacts are loaded."""
    parser = argparse.ArgumentParser(prog="fuzz-load")
    parser.add_argument("-n", type=int, default=50_000)
    count = parser.parse_args(arguments).n
    split = string_model(node("StringSplit", "a", "y z", delimiter=","), inputs={"a": ["n"]}, outputs=["y", "z"])
    too_few = False
    with tempfile.TemporaryDirectory() as folder:
        for name, model in (("network", mlp()), ("strings", split)):
            path = Path(folder) / f"{name}.weft"
            weft.compile(model).save(path)
            loaded, refused = fuzz(path, Path(folder), count // 2)
            print(f"{name}: {loaded} loaded, {refused} refused")
            too_few |= loaded * 10 < count // 2
    return int(too_few)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
