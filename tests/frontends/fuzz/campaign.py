"""The inputs of a campaign, each made of its number, and their way through an importer and the graph passes."""

from __future__ import annotations

import random
import resource
import tempfile
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.frontends.fuzz.files import Files
from tests.frontends.fuzz.formats import FORMATS
from tests.frontends.fuzz.kept_reader import kept_reader
from tests.support.time_limit import TooSlow, limited

from weft.driver.evaluate import NativeEvaluator
from weft.frontends import to_graph
from weft.frontends.frontend import Shapes
from weft.graph import optimize
from weft.support.errors import WeftError
from weft.targets import host

SECONDS: Final = 20
"""Processor time of an input in Python; a call of a library that takes twice as long ends the process."""
MEMORY: Final = 1 << 30
"""Bytes that a process may have beside those with which it begins; models of the cases have a few kilobytes."""


@dataclass(frozen=True)
class Outcome:
    """How many inputs there were, how many of them were imported, and what failed."""

    count: int = 0
    imported: int = 0
    failures: tuple[str, ...] = field(default=())

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(self.count + other.count, self.imported + other.imported, self.failures + other.failures)

    @property
    def is_good(self) -> bool:
        """Whether nothing failed, and the inputs were such that it means something."""
        return not self.failures and self.count <= self.imported * 50 and self.imported < self.count

    def __str__(self) -> str:
        told = [f"{self.count} inputs: {self.imported} imported, {len(self.failures)} fail, the others are refused"]
        return "\n".join([*told, *self.failures])


def limit_memory() -> None:
    """Gives this process `MEMORY` beside what it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, hard))


def limit_time() -> None:
    """Has the system end this process if an input is still at work long after it was to be stopped."""
    used = int(time.process_time())
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (used + 2 * SECONDS + 1, hard))


def damaged(name: str, seed: int, number: int) -> Files:
    """Returns the files of an input."""
    return FORMATS[name].damaged(random.Random(f"{seed} {number}"))


def run_inputs(name: str, seed: int, numbers: range, passes: bool = False) -> Outcome:
    """Runs inputs of a format."""
    total = Outcome()
    with kept_reader():
        for number in numbers:
            total += run_input(name, seed, number, passes)
    return total


def run_input(name: str, seed: int, number: int, passes: bool = False) -> Outcome:
    """Runs one input; if it is imported and *passes* are wanted, through the graph passes too."""
    told = f"input {number} of seed {seed} of {name}"
    files = damaged(name, seed, number)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = files.write(Path(folder))
        start = time.process_time()
        try:
            with limited(SECONDS):
                return Outcome(1, through(model, files.shapes, passes))
        except TooSlow:
            return Outcome(1, 0, (f"{told}: {time.process_time() - start:.0f} seconds",))
        except Exception as error:
            return Outcome(1, 0, (f"{told}: {type(error).__name__}: {str(error)[:200]}",))


def through(model: Path, shapes: Shapes | None, passes: bool) -> int:
    """Tells whether an input was imported; Weft's own errors are answers."""
    try:
        graph = to_graph(model, shapes)
    except WeftError:
        return 0
    try:
        if passes:
            optimize(graph, host(), NativeEvaluator(host()), verify=True)
    except WeftError as error:
        if "is a bug in Weft" in str(error) or "the pass failed" in str(error):
            raise RuntimeError(str(error)) from error
    return 1
