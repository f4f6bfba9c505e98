"""A network whose kernels are called more than once, and its facts without measuring this machine."""

from __future__ import annotations

import json
from typing import Any, Final

import onnx

from weft.cli.demo_models import basic_block, conv_bn
from weft.cli.onnx_builder import GraphBuilder, gemm
from weft.cli.report.page_data import Timing, report_facts
from weft.driver.build import Compilation
from weft.driver.measure.roofline import Level, Roofs

ROOFS = Roofs(100.0, [Level("L1", 1e3, 400.0), Level("L2", 1e6, 100.0), Level("DRAM", float("inf"), 10.0)])
MACHINE = {"machine": "x86_64", "system": "Linux", "cpu": "a processor"}


def network() -> onnx.ModelProto:
    """Returns a stem, two alike residual blocks, one that halves the image, and a classifier."""
    g = GraphBuilder("tiny", 0)
    x = g.op("Relu", conv_bn(g, g.input("x", (1, 3, 16, 16)), (3, 8)))
    x = basic_block(g, basic_block(g, x, (8, 8), stride=1), (8, 8), stride=1)
    x = g.op("Flatten", g.op("GlobalAveragePool", basic_block(g, x, (8, 16), stride=2)), axis=1)
    g.output(gemm(g, x, (16, 10)), "y")
    return g.model()


_FACTS: Final[dict[tuple[int, int, str], tuple[str, object]]] = {}
"""The facts of each compilation as JSON, which many tests ask for, with what they are of, so that it stays the only one there."""


def facts_of(made: Compilation, timing: Timing | None = None, title: str = "tiny") -> dict[str, Any]:
    """Returns what the page of *made* shows; the caller's own, to be changed at will."""
    key = id(made), id(timing), title
    if key not in _FACTS:
        _FACTS[key] = json.dumps(report_facts(title, made, MACHINE, timing)), (made, timing)
    return dict(json.loads(_FACTS[key][0]))


def embedded(text: str) -> dict[str, Any]:
    """Returns the facts in a page, given the text of the element that holds them: a tab stands for four spaces."""
    return dict(json.loads(text.replace("\t", "    ")))
