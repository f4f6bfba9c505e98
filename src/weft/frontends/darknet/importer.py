"""From a network's two files to a graph: the input, then each section by its translation in the table."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from weft.frontends.content import read_text
from weft.frontends.darknet import ops
from weft.frontends.darknet.call import Call
from weft.frontends.darknet.layer_states import States
from weft.frontends.darknet.registry import TABLE
from weft.frontends.darknet.sections import LONGEST_TEXT, Section, parse_sections, types_of
from weft.frontends.darknet.weights import Weights
from weft.frontends.frontend import Shapes
from weft.frontends.input_shapes import InputShapes
from weft.frontends.unsupported import unsupported_operators
from weft.graph import Graph
from weft.graph.builder import Operand, PartialEvaluator
from weft.runtime.metadata import ModelMetadata
from weft.support.dtypes import f32
from weft.support.lazy_import import import_all

import_all(ops.__path__, ops.__name__)
TABLE.seal()

INPUT: Final = "data"

DETECTORS: Final = ("yolo", "region", "detection")
"""Sections whose results are the network's, wherever they stand."""


def from_darknet(text: Path, weights: Path, shapes: Shapes | None = None) -> Graph:
    """Imports the network in the files *text* and *weights*.

    Its input `data` is [1, channels, height, width] of the section `[net]` unless *shapes* gives it another, and its outputs
    are those of the detectors and of the last layer, called by type and number: `yolo_82`. Recurrent layers take one step of a
    sequence in each call, and keep their states for the next.

    Raises `ModelError` naming the layer and the line, and `UnsupportedOperators` listing all layers that Weft does not have.
    """
    net, *layers = parse_sections(read_text(text, LONGEST_TEXT, hint="give a Darknet .cfg"), str(text))
    missing = {f"[{kind}]": places for kind, places in types_of(layers).items() if kind not in TABLE}
    if missing:
        hint = f"train the network without these; the layers are {', '.join(sorted(TABLE))}"
        raise unsupported_operators(dict(sorted(missing.items())), hint)
    graph = Graph("main")
    graph.metadata = ModelMetadata(producer_name="darknet", graph_name=text.stem)
    stream, evaluator = Weights(weights), PartialEvaluator(graph)
    states = States(graph, evaluator)
    x = _input(Call(evaluator, net, (), None, stream, states), graph, shapes)
    before: list[Operand] = []
    for section in layers:
        graph.is_extended |= TABLE.is_foreign(section.type)
        x = TABLE[section.type](Call(evaluator, section, before, x, stream, states))
        before.append(x)
    stream.finish()
    _outputs(graph, evaluator, layers, before)
    return states.finish()


def _input(c: Call, graph: Graph, shapes: Shapes | None) -> Operand:
    """Declares the network's input: images, or vectors for a network with `inputs`."""
    if "inputs" in c.section.options:
        declared: list[int | str] = [1, c.integer("inputs", 0, 1)]
    else:
        declared = [1, *(c.integer(name, 0, 1) for name in ("channels", "height", "width"))]
    return graph.input(INPUT, InputShapes(shapes or {}).resolve({INPUT: declared}, graph)[INPUT], f32)


def _outputs(graph: Graph, evaluator: PartialEvaluator, layers: list[Section], made: list[Operand]) -> None:
    for section, y in zip(layers, made, strict=True):
        if section.type in DETECTORS or section is layers[-1]:
            value = evaluator.value(y)
            if value not in graph.outputs:
                graph.output(value, f"{section.type}_{section.index}")
