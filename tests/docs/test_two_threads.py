"""What the tour says of two threads can't hold where the second one never runs."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from tests.docs.markdown import ROOT, CodeBlock, blocks

from weft.driver.function import build_function
from weft.driver.measure.peak import Peak
from weft.loop import parse_program
from weft.support.dtypes import f32
from weft.targets import host

pytestmark = pytest.mark.timed
CHAPTER = ROOT / "docs" / "tour" / "02_matmul.md"
N, DEPTH = 256, 4096
PROGRAM = f"""
def product(A: f32[{N}, {DEPTH}], B: f32[{DEPTH}, {N}], C: f32[{N}, {N}]):
    for i in parallel(0, {N}):
        for j in vectorized(0, {N}):
            C[i, j] = 0.0
        for k in range(0, {DEPTH}):
            for j_1 in vectorized(0, {N}):
                C[i, j_1] = C[i, j_1] + A[i, k] * B[k, j_1]
"""


def measuring() -> tuple[CodeBlock, CodeBlock]:
    """The block of the tour that measures two threads, and the one that judges how fast they are."""
    code = [b for b in blocks(CHAPTER) if b.language == "python"]
    return next((a, b) for a, b in pairwise(code) if "threads=threads" in a.text)


@pytest.mark.skipif(host().cores < 2, reason="this machine has one core")
def test_the_check_passes_where_the_second_thread_runs() -> None:
    text, scope = measuring()[0].text, names()
    exec(text, scope)


def test_the_check_fails_where_it_never_runs() -> None:
    """Nor is it one that may be skipped on a disturbed machine."""
    block, scope = measuring()[0], names()
    assert block.file == ""
    with pytest.raises(AssertionError):
        exec(block.text.replace("threads=threads", "threads=1"), scope)
    assert "walls" in scope, "nothing else was wrong"


def names() -> dict[str, object]:
    """What the chapter has made by then, of a program that takes some 20 ms."""
    a, b = np.ones((N, DEPTH), np.float32), np.ones((DEPTH, N), np.float32)
    function, c = build_function(parse_program(PROGRAM)), np.empty((N, N), np.float32)
    facts = replace(host(), cores=2)
    return {"function": function, "a": a, "b": b, "c": c, "n": N, "np": np, "limit": Peak(f32), "target": facts}


def test_speed_is_judged_by_the_wall() -> None:
    """Processor time alone would be the best that there is where the second thread never runs."""
    _, judged = measuring()
    numbers = {"median": lambda x: x[0], "cores": [2.0], "pairs": [1.0], "least": {1: 1.0, 2: 1.0}}
    exec(judged.text, {**numbers, "best": {1: 1.0, 2: 0.5}})
    with pytest.raises(AssertionError):
        exec(judged.text, {**numbers, "best": {1: 1.0, 2: 1.0}})
    exec(judged.text, {**numbers, "best": {1: 1.0, 2: 1.0}, "pairs": [1.2]})  # there were no two cores of their own
