"""From a network's two files to a graph: its inputs, then each layer by its translation in the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from weft.frontends.caffe import ops
from weft.frontends.caffe.blobs import read_weights
from weft.frontends.caffe.call import Call, State
from weft.frontends.caffe.parameters import Parameters
from weft.frontends.caffe.registry import TABLE
from weft.frontends.caffe.text_format import LONGEST_TEXT, Message, parse_message
from weft.frontends.content import read_text
from weft.frontends.frontend import Shapes
from weft.frontends.input_shapes import InputShapes
from weft.frontends.unsupported import unsupported_operators
from weft.graph import Array, Graph, declare_states
from weft.graph.builder import Operand, PartialEvaluator
from weft.runtime.metadata import ModelMetadata
from weft.support.dtypes import f32
from weft.support.errors import ModelError
from weft.support.lazy_import import import_all
from weft.support.text import printable_line

import_all(ops.__path__, ops.__name__)
TABLE.seal()

_DATA: Final = ("Data", "ImageData", "HDF5Data", "WindowData", "Python")
"""Layers that read training images, which stand where a deployed network has its input."""

_KEPT: Final = ("scale", "mean_value", "mean_file", "crop_size", "mirror", "force_color", "force_gray")
"""Fields of `transform_param` that say how images were prepared; they are kept as metadata."""


def from_caffe(text: Path, weights: Path, shapes: Shapes | None = None) -> Graph:
    """Imports the network in the files *text* and *weights*, as it is tested: layers of training alone are left out.

    Its inputs have the shapes that the text gives them unless *shapes* has others, and its outputs are the blobs that no
    layer takes. Raises `ModelError` naming the layer and the line, and `UnsupportedOperators` listing all layers that Weft
    does not have.
    """
    net = Parameters(parse_message(read_text(text, LONGEST_TEXT, hint="give a Caffe .prototxt"), str(text)), str(text))
    old = net.messages("layers")
    if old:
        names = ", ".join(Parameters(m, str(text)).text("name", "?") for m in old[:3])
        raise ModelError(
            f"the network is written in Caffe's format of 2014, with {len(old)} fields `layers` from line {old[0].line} on: "
            f"{printable_line(names)}",
            where=str(text),
            hint="rewrite it with Caffe's own tool: upgrade_net_proto_text OLD.prototxt NEW.prototxt",
        )
    layers = [p for p in map(_named, net.messages("layer")) if _is_tested(p)]
    _check_types(layers)
    return _Importer(text, net, layers).run(weights, shapes)


def _named(message: Message) -> Parameters:
    p = Parameters(message, f"line {message.line}")
    return Parameters(message, f"{p.text('type', '?')} {p.text('name', '?')}, line {message.line}")


def _is_tested(layer: Parameters) -> bool:
    """Tells whether a layer is part of the network in its phase TEST, in which deployed networks are."""
    rules = [[Parameters(m, layer.where) for m in layer.messages(name)] for name in ("include", "exclude")]
    included, excluded = [[r.text("phase", "TEST") in ("TEST", "1") for r in found] for found in rules]
    return any(included) if included else not any(excluded)


def _check_types(layers: Sequence[Parameters]) -> None:
    missing: dict[str, list[str]] = {}
    for p in layers:
        kind = p.text("type", "?")
        if kind not in TABLE and kind not in ("Input", "MemoryData"):
            missing.setdefault(kind, []).append(f"{p.text('name', '?')} (line {p.message.line})")
    if missing:
        data = any(kind in missing for kind in _DATA)
        hint = f"the layers are {', '.join(sorted(TABLE))}; " + (
            'give the deployed network, whose input is a layer { type: "Input" }'
            if data
            else "train the network without these"
        )
        raise unsupported_operators(dict(sorted(missing.items())), hint)


class _Importer:
    def __init__(self, text: Path, net: Parameters, layers: Sequence[Parameters]) -> None:
        self.net, self.layers = net, layers
        self.graph = Graph("main")
        metadata = {f"transform_param.{k}": v for k, v in _preparation(net)}
        self.graph.metadata = ModelMetadata(
            producer_name="caffe", graph_name=net.text("name", text.stem), custom_metadata_map=metadata
        )
        self.evaluator = PartialEvaluator(self.graph)
        self.scope: dict[str, Operand] = {}
        self.unread: dict[str, None] = {}
        self.states: list[State] = []

    def run(self, weights: Path, shapes: Shapes | None) -> Graph:
        """Imports the whole network."""
        self._inputs(shapes)
        blobs = read_weights(weights)
        for p in self.layers:
            if p.text("type", "") not in ("Input", "MemoryData"):
                self._layer(p, blobs.get(p.text("name", ""), []))
        if not self.unread:
            raise ModelError(
                "the network has no results: a layer takes each blob",
                where=self.net.where,
                hint="take the last layer away",
            )
        for name in self.unread:
            value = self.evaluator.value(self.scope[name])
            self.graph.output(value, name)
        return self._with_states()

    def _with_states(self) -> Graph:
        """Returns the graph with values that layers keep from one run to the next as its states."""
        pairs: dict[str, str] = {}
        for state in self.states:
            pairs[state.taken.name] = self.graph.fresh_name(f"{state.taken.name}_next")
            self.graph.output(self.evaluator.value(state.left), pairs[state.taken.name])
        return declare_states(self.graph, pairs, {}) if pairs else self.graph

    def _inputs(self, shapes: Shapes | None) -> None:
        declared = dict(_declared(self.net, self.layers))
        if not declared:
            raise ModelError(
                "the network has no input",
                where=self.net.where,
                hint='give the deployed network, whose input is a layer { type: "Input" }',
            )
        sizes = InputShapes(shapes or {}).resolve(declared, self.graph)
        for name in declared:
            self._define(name, self.graph.input(name, sizes[name], f32))

    def _layer(self, p: Parameters, blobs: Sequence[Array]) -> None:
        bottoms, tops = p.texts("bottom"), p.texts("top")
        for name in bottoms:
            if name not in self.scope:
                raise ModelError(
                    f"its bottom {name!r} is the top of no layer before",
                    where=p.where,
                    hint="mend its name in the .prototxt",
                )
            self.unread.pop(name, None)
        given = [self.scope[name] for name in bottoms]
        kind = p.text("type", "")
        self.graph.is_extended |= TABLE.is_foreign(kind)
        made = TABLE[kind](Call(self.evaluator, p.where, p, given, blobs, len(tops), self.states))
        results = made if isinstance(made, tuple) else (made,)
        if len(tops) > len(results):
            raise ModelError(
                f"it has {len(tops)} tops, and {len(results)} are supported", where=p.where, hint="take the others away"
            )
        for name, x in zip(tops, results, strict=False):
            self._define(name, x)

    def _define(self, name: str, x: Operand) -> None:
        self.scope[name] = x
        self.unread.pop(name, None)
        self.unread[name] = None


def _declared(net: Parameters, layers: Sequence[Parameters]) -> Iterator[tuple[str, list[int]]]:
    """Yields the names of the inputs with their shapes, in whichever of Caffe's three ways they are written."""
    names, flat = net.texts("input"), net.integers("input_dim", 0)
    shapes = [Parameters(m, net.where).integers("dim", 0) for m in net.messages("input_shape")]
    shapes = shapes or [flat[k : k + 4] for k in range(0, len(flat), 4)]
    if len(names) != len(shapes):
        raise ModelError(
            f"the network has {len(names)} inputs, and shapes for {len(shapes)}",
            where=net.where,
            hint="write input_shape { dim: 1 dim: 3 dim: 224 dim: 224 } for each",
        )
    yield from zip(names, shapes, strict=True)
    for p in layers:
        if p.text("type", "") == "Input":
            given = [Parameters(m, p.where).integers("dim", 0) for m in p.inner("input_param").messages("shape")]
        elif p.text("type", "") == "MemoryData":
            m = p.inner("memory_data_param")
            given = [[m.integer(name, 1, 0) for name in ("batch_size", "channels", "height", "width")]]
        else:
            continue
        for k, name in enumerate(p.texts("top")[: 1 if p.text("type", "") == "MemoryData" else None]):
            if not given:
                raise ModelError(
                    f"the input {name!r} has no shape",
                    where=p.where,
                    hint="write input_param { shape { dim: 1 dim: 3 dim: 224 dim: 224 } }",
                )
            yield name, given[k % len(given)]


def _preparation(net: Parameters) -> Iterator[tuple[str, str]]:
    for message in net.messages("layer"):
        p = _named(message)
        found = p.inner("transform_param")
        for name in _KEPT:
            if found.has(name) and _is_tested(p):
                yield name, ", ".join(found.texts(name))
