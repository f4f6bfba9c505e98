"""The inputs of a campaign, each made of its number, and their way through the importer and the graph passes."""

from __future__ import annotations

import random
import resource
import signal
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import ModelProto
from tests.frontends.onnx.fuzz.mutations import HARSH
from tests.frontends.onnx.test_onnx_cases import cases

from weft.driver.evaluate import NativeEvaluator
from weft.frontends.onnx.importer import from_onnx
from weft.graph import optimize
from weft.support.errors import WeftError
from weft.targets import host

CHUNK: Final = 100
SECONDS: Final = 20
MEMORY: Final = 1 << 30
"""Bytes that a process may have beside those with which it begins; models of the cases declare a few kilobytes."""


@dataclass(frozen=True)
class Outcome:
    """How many inputs there were, how many of them protobuf read, how many reached the passes, and what failed."""

    count: int = 0
    parsed: int = 0
    passed: int = 0
    failures: tuple[str, ...] = field(default=())

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(
            self.count + other.count,
            self.parsed + other.parsed,
            self.passed + other.passed,
            self.failures + other.failures,
        )

    @property
    def is_good(self) -> bool:
        """Whether nothing failed, and the inputs were such that it means something."""
        return not self.failures and self.parsed * 2 >= self.count and self.passed * 10 >= self.count

    def __str__(self) -> str:
        told = [f"{self.count} inputs: {self.parsed} parse, {self.passed} reach the passes, {len(self.failures)} fail"]
        return "\n".join([*told, *self.failures])


class TooSlow(BaseException):
    """An input took longer than `SECONDS`."""


def run_chunk(wanted: tuple[int, int, int]) -> Outcome:
    """Runs the inputs of a seed from a number on, so many of them."""
    seed, first, count = wanted
    _limit_memory()
    total = Outcome()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(first, first + count):
            total += _run(damaged(seed, number), f"input {number} of seed {seed}")
    return total


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, hard))


def damaged(seed: int, number: int) -> bytes:
    """Returns the bytes of an input: a model with some fields, or in one of eight some bytes, that are others."""
    rng = random.Random(f"{seed} {number}")
    case = rng.choice(cases()[rng.choice(sorted(cases()))])
    assert case.model is not None
    model = ModelProto()
    model.CopyFrom(case.model)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        if model.graph.node and model.graph.input:
            _try(rng, model)
    made = bytearray(model.SerializeToString())
    for _ in range(rng.choice([1, 2, 8]) if rng.random() < 0.125 else 0):
        made[rng.randrange(len(made))] = rng.randrange(256)
    return bytes(made)


def _try(rng: random.Random, model: ModelProto) -> None:
    try:
        rng.choice(HARSH)(model, rng)
    except (TypeError, ValueError):  # a number that this field can't have
        return


def _run(data: bytes, name: str) -> Outcome:
    def late(*_: Any) -> None:
        raise TooSlow

    try:
        ModelProto.FromString(data)
        parsed = 1
    except DecodeError:
        parsed = 0
    before, start = signal.signal(signal.SIGVTALRM, late), time.process_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        return Outcome(1, parsed, _through(data))
    except TooSlow:
        return Outcome(1, parsed, 0, (f"{name}: {time.process_time() - start:.0f} seconds",))
    except Exception as error:
        return Outcome(1, parsed, 0, (f"{name}: {type(error).__name__}: {str(error)[:200]}",))
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _through(data: bytes) -> int:
    """Tells whether an input reached the passes; Weft's own errors are answers."""
    try:
        graph = from_onnx(data)
    except WeftError:
        return 0
    try:
        optimize(graph, host(), NativeEvaluator(host()), verify=True)
    except WeftError as error:
        if "is a bug in Weft" in str(error) or "the pass failed" in str(error):
            raise RuntimeError(str(error)) from error
    return 1
