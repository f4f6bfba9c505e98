"""From a neural network of Core ML to a graph: its inputs, their preparation, and each layer by its translation in the table.

Networks of before 2019 have tensors of five dimensions [sequence, batch, C, H, W], and inputs [C] or [C, H, W]; Weft's graph has
images [1, C, H, W] for them. Others have the dimensions that they say.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Final

import numpy as np

from weft.frontends.coreml import layers
from weft.frontends.coreml.call import AGAIN
from weft.frontends.coreml.layer_table import LAYERS, NAMES
from weft.frontends.coreml.layers.loops_and_branches import inner_networks
from weft.frontends.coreml.network_call import NetworkCall, Scope
from weft.frontends.fitting import fitting
from weft.frontends.frontend import Shapes
from weft.frontends.input_shapes import Declared, InputShapes
from weft.frontends.protobuf_message import Message
from weft.frontends.unsupported import unsupported_operators
from weft.graph import Graph
from weft.graph.builder import Builder, CompileTimeConstant, Operand, PartialEvaluator, static_sizes
from weft.support.dtypes import f32, i32
from weft.support.errors import ModelError
from weft.support.lazy_import import import_all

import_all(layers.__path__, layers.__name__)
LAYERS.seal()

_PARAMS: Final = 100
"""Fields of a layer from here on are its parameters; those before are its name, inputs and outputs."""

_INT32: Final = 131104
MOST_LAYERS: Final = 200_000
_GRAY, _BGR = 10, 30


def import_network(network: Message, description: Message, graph: Graph, shapes: Shapes | None) -> None:
    """Imports a network."""
    _check_layers(network)
    _Importer(network, description, graph).run(shapes)


_OTHERS: Final = {
    212: "cropResize",
    340: "sequenceRepeat",
    500: "custom",
    620: "loopBreak",
    625: "loopContinue",
    1170: "randomNormalLike",
    1175: "randomNormalStatic",
    1180: "randomNormalDynamic",
    1190: "randomUniformLike",
    1195: "randomUniformStatic",
    1200: "randomUniformDynamic",
    1210: "randomBernoulliLike",
    1215: "randomBernoulliStatic",
    1220: "randomBernoulliDynamic",
    1230: "categoricalDistribution",
}
"""The names of layers that Weft does not have, by the numbers of their parameters' fields."""


def _check_layers(network: Message) -> None:
    """Raises `UnsupportedOperators` for the layers that are not in the table, those of networks inside of others too."""
    missing: dict[str, list[str]] = {}
    waiting = [network]
    while waiting:
        for m in waiting.pop().messages(1):
            number = _kind_of(m)
            waiting += inner_networks(m)
            if NAMES.get(number) not in LAYERS:
                missing.setdefault(_OTHERS.get(number, f"layer of kind {number}"), []).append(m.text(1))
    if missing:
        hint = "kinds are fields of the message NeuralNetworkLayer; convert the model to an mlprogram"
        raise unsupported_operators(dict(sorted(missing.items())), hint)


def _kind_of(m: Message) -> int:
    return next((n for n in m.field_numbers if n >= _PARAMS), 0)


class _Importer:
    def __init__(self, network: Message, description: Message, graph: Graph) -> None:
        self.network, self.description, self.graph = network, description, graph
        self.evaluator = PartialEvaluator(graph)
        self.is_old = network.integer(5) == 0
        self.values: dict[str, Operand] = {}
        self.imported = 0

    def run(self, shapes: Shapes | None) -> None:
        """Imports the whole network."""
        self._inputs(shapes)
        for m in self.network.messages(2):
            self._prepare(m)
        self.run_layers(self.network, self.values, self.evaluator)
        for m in self.description.messages(10):
            name = m.text(1)
            if name in self.values:
                self.graph.output(self.evaluator.value(self._as_declared(m)), name)
        if not self.graph.outputs:
            raise ModelError("the network computes none of the outputs that it describes", hint=AGAIN)

    def run_layers(self, network: Message, values: MutableMapping[str, Operand], evaluator: PartialEvaluator) -> None:
        """Adds the layers of a network to the graph of *evaluator*, and their results to *values*."""
        for m in network.messages(1):
            self.imported += 1
            if self.imported > MOST_LAYERS:
                raise ModelError(f"the network has more than {MOST_LAYERS} layers", hint=AGAIN)
            self._layer(m, values, evaluator)

    def _inputs(self, shapes: Shapes | None) -> None:
        features = {m.text(1): m.inner(3) for m in self.description.messages(1)}
        asked = shapes or {}
        declared: dict[str, Declared | None] = {
            n: _open_shape(n, m) if n in asked else _shape_of(n, m) for n, m in features.items()
        }
        found = InputShapes(shapes or {}).resolve(declared, self.graph)
        for name, m in features.items():
            dtype = i32 if m.inner(5).integer(2) == _INT32 else f32
            x: Operand = self.graph.input(name, found[name], dtype)
            if self.is_old and x.rank in (1, 3):
                x = Builder(self.evaluator, f"input {name}").reshape(x, [1, *x.shape, *[1] * (3 - x.rank)])
            self.values[name] = x

    def _prepare(self, m: Message) -> None:
        """Scales an image's channels, and adds numbers to them."""
        name = m.text(1) or next((i.text(1) for i in self.description.messages(1) if i.inner(3).has(4)), "")
        scaler, x = m.message(10), self.values.get(name)
        if x is None or x.rank != 4:
            raise ModelError(f"its preprocessing is of {name!r}, which is no image", where="preprocessing", hint=AGAIN)
        b = Builder(self.evaluator, f"preprocessing of {name}")
        if scaler is None:
            b.fail("a mean image is not supported", "subtract it before calling the model")
        feature = next(i.inner(3).inner(4) for i in self.description.messages(1) if i.text(1) == name)
        fields = {_GRAY: (30,), _BGR: (20, 21, 22)}.get(feature.integer(3), (22, 21, 20))
        shift = np.array([scaler.number(n) for n in fields], np.float32).reshape(1, -1, 1, 1)
        scaled = b.add("mul", x, b.scalar(scaler.number(10, 1.0), x.dtype))
        self.values[name] = b.add("add", scaled, CompileTimeConstant(shift))

    def _layer(self, m: Message, values: MutableMapping[str, Operand], evaluator: PartialEvaluator) -> None:
        number, name, outputs = _kind_of(m), m.text(1), m.texts(3)
        kind = NAMES[number]
        source = f"{kind} {name}"
        missing = [n for n in m.texts(2) if n not in values]
        if missing:
            raise ModelError(f"it uses {missing[0]!r}, which nothing before it makes", where=source, hint=AGAIN)
        given = [values[n] for n in m.texts(2)]
        scope = Scope(values, self.run_layers)
        c = NetworkCall(evaluator, source, given, m.inner(number), len(outputs), self.is_old, scope)
        self.graph.is_extended |= LAYERS.is_foreign(kind)
        with fitting(source, "parameters and inputs", AGAIN):
            made = LAYERS[kind](c)
        results = made if isinstance(made, tuple) else (made,)
        if len(results) != len(outputs):
            raise ModelError(f"it has {len(outputs)} results, and should have {len(results)}", where=source, hint=AGAIN)
        values.update(zip(outputs, results, strict=True))

    def _as_declared(self, m: Message) -> Operand:
        """Returns an output in the shape that the network describes, if that is known, and of as many elements."""
        y, shape = self.values[m.text(1)], m.inner(3).inner(5).integers(1)
        sizes = static_sizes(y.shape)
        if not shape or sizes is None or sizes == shape or int(np.prod(sizes)) != int(np.prod(shape)):
            return y
        return Builder(self.evaluator, f"output {m.text(1)}").reshape(y, shape)


def _open_shape(name: str, m: Message) -> list[int | None]:
    """Returns the shape of an input, with None for sizes that may be others: in a range, or among listed shapes."""
    shape = _shape_of(name, m)
    image, array = m.inner(4), m.inner(5)
    if m.has(4):
        ranges = [image.inner(31).inner(n) for n in (2, 1)]
        listed = [[s.integer(n) for n in (2, 1)] for s in image.inner(21).messages(1)]
    else:
        ranges, listed = [*array.inner(31).messages(1)], [[*s.integers(1)] for s in array.inner(21).messages(1)]
    first = len(shape) - (2 if m.has(4) else len(ranges or shape))
    moves = {first + d for d, r in enumerate(ranges) if r.integer(1) != r.integer(2)}
    moves |= {first + d for sizes in listed for d, s in enumerate(sizes) if shape[first + d : first + d + 1] != [s]}
    return [None if d in moves else s for d, s in enumerate(shape)]


def _shape_of(name: str, m: Message) -> list[int]:
    """Returns the shape of an input: an array's, or that of an image [1, channels, height, width]."""
    image = m.message(4)
    if image is not None:
        return [1, 1 if image.integer(3) == _GRAY else 3, image.integer(2), image.integer(1)]
    shape = [*m.inner(5).integers(1)]
    if not shape or any(not 0 < s < 1 << 31 for s in shape) or len(shape) > 8:
        raise ModelError("it is neither an array of a known shape nor an image", where=f"input {name}", hint=AGAIN)
    return shape
