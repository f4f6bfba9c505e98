"""Programs are shown short enough for a terminal, and mean the same to who reads them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models import conv_bn_relu, mlp

import weft
from weft.cli.wrap_text import readable_program, wrapped

PROGRAM = """\
def f(x: f32[4, 8], y: f32[8, 4]):
    t = alloc("register", f32[4])
    for i in parallel(0, 8):
        for k in range(0, 4):
            with block("y", vi=spatial(8, i), vk=reduce(4, k), vj=spatial(32, i * 4 + k), where=(i < 7 and k < n)):
                reads(x[vk, vi])
                writes(y[vi, vk])
                y[vi, vk] = x[vk, vi] + vj
        if i < 7:
            y[i, 0] = 0.0
        else:
            for k in vectorized(2, 4):
                y[i, k] = 1.0
    y[0, 0] = x[0, 0] + x[0, 0] + x[0, 0] + x[0, 0] + x[0, 0] + x[0, 0] + x[0, 0] + x[0, 0] + x[0, 0] + x[0, 0] + x[0, 0]
"""
SHORT = """\
def f(x: f32[4, 8], y: f32[8, 4]):
  t = alloc("register", f32[4])
  for i in parallel(8):
    for k in range(4):
      block y, vj = i * 4 + k, where (i < 7 and
          k < n):
        y[i, k] = x[k, i] + vj
    if i < 7:
      y[i, 0] = 0.0
    else:
      for k in vectorized(2, 4):
        y[i, k] = 1.0
  y[0, 0] = x[0, 0] + x[0, 0] + x[0, 0] + x[0,
      0] + x[0, 0] + x[0, 0] + x[0, 0] + x[0, 0]
      + x[0, 0] + x[0, 0] + x[0, 0]
"""


def test_a_program() -> None:
    assert readable_program(PROGRAM, 48) == SHORT
    assert readable_program(PROGRAM, 36).splitlines()[-1] == "      0] + x[0, 0] + x[0, 0] + x[0 …"


def test_nests_are_one_line() -> None:
    nest = (
        "for i in range(0, 2):\n    for j in range(0, n):\n        for k in unrolled(1, 3):\n            f(i, j, k)\n"
    )
    assert readable_program(nest, 80) == "for i in range(2), j in range(n), k in unrolled(1, 3):\n  f(i, j, k)\n"


@pytest.mark.parametrize("width", [50, 80])
def test_kernels_of_models(width: int) -> None:
    for model in (mlp(), conv_bn_relu()):
        for kernel in weft.build(model).kernels.values():
            for text in (kernel.scheduled, kernel.flat):
                shown = readable_program(text, width)
                assert max(map(len, shown.splitlines())) <= width
                assert "reads(" not in shown
                for loop in re.findall(r"for (\w+) in", text):
                    assert re.search(rf"\b{loop} in\b", " ".join(shown.split())), loop


@given(st.text("ab ,", max_size=200), st.integers(20, 60), st.integers(1, 5))
def test_lines_fit_and_nothing_is_lost(text: str, width: int, most: int) -> None:
    whole = wrapped(text, width)
    assert all(len(line) <= width for line in whole)
    assert "".join("".join(whole).split()) == "".join(text.split())
    cut = wrapped(text, width, most=most)
    assert len(cut) == min(len(whole), most)
    assert all(len(line) <= width for line in cut)
    assert cut[-1].endswith(" …") == (len(whole) > most)
