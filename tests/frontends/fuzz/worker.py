"""The process that runs inputs: it prints each number as it begins, and the outcome as JSON, so that its end tells of an input.

python -m tests.frontends.fuzz.worker FORMAT SEED FIRST END PASSES
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from tests.frontends.fuzz.campaign import limit_memory, limit_time, run_input
from tests.frontends.fuzz.formats import FORMATS
from tests.frontends.fuzz.kept_reader import kept_reader

from weft.frontends import to_graph


def main(arguments: list[str]) -> None:
    """Runs the inputs."""
    name, (seed, first, end, passes) = arguments[0], map(int, arguments[1:])
    with kept_reader():
        _warm(name)
        limit_memory()
        for number in range(first, end):
            limit_time()
            print(number, flush=True)
            print(json.dumps(asdict(run_input(name, seed, number, bool(passes)))), flush=True)


def _warm(name: str) -> None:
    """Imports a model that nothing is wrong with, so that libraries are loaded before memory is limited."""
    with tempfile.TemporaryDirectory() as folder:
        whole = FORMATS[name].seeds[0]
        to_graph(whole.write(Path(folder)), whole.shapes)


if __name__ == "__main__":
    main(sys.argv[1:])
