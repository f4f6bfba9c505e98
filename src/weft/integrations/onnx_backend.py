"""The standard interface `onnx.backend`, by which ONNX's own tests, among others, run a model."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, ValueInfoProto
from onnx.backend.base import Backend, BackendRep, namedtupledict

from weft.driver.cache.code_cache import default_cache
from weft.driver.calibrate import target_here
from weft.driver.compile import compile_package
from weft.driver.options import check_options
from weft.frontends.onnx.held import kind_of, part_name
from weft.frontends.onnx.importer import from_onnx
from weft.graph import Graph
from weft.runtime.arrays import Array
from weft.runtime.model import Model
from weft.support.errors import InputError, ModelError, UnknownValues, UnsupportedOperators

MOST_KEPT: Final = 16
"""Models kept for the tensors that sequences held; the least recently used goes first."""

_NOT_OURS: Final = ("rtol", "atol")
"""The options that ONNX's test runner passes on to every function, for its own comparison of the results."""


class WeftRep(BackendRep):
    """A model that is ready to be run.

    Of a sequence, or an optional value, ONNX's types do not tell what it holds, and a compiled model has an input or an output
    for each tensor. A model with such an input or output, and no other, is compiled when it is run: for the tensors that are
    held then, and the integers that decide how many there will be.
    """

    def __init__(self, proto: ModelProto, threads: int | None, options: Mapping[str, Any]) -> None:
        """Compiles the model; raises `ModelError` if that is not possible for any values."""
        weights = {t.name for t in proto.graph.initializer} | {t.values.name for t in proto.graph.sparse_initializer}
        self.names = [i.name for i in proto.graph.input if i.name not in weights]
        self._sequences = {i.name for i in (*proto.graph.input, *proto.graph.output) if _is_sequence(i)}
        self._outputs = namedtupledict("Outputs", [o.name for o in proto.graph.output])
        self._proto = proto
        self._threads = threads
        self._options = check_options(**options)
        self._by_held: OrderedDict[object, Model] = OrderedDict()
        self._model: Model | None = None
        try:
            self._model = self._compiled(from_onnx(proto))
        except UnknownValues:
            if not any(holds_tensors(i) for i in (*proto.graph.input, *proto.graph.output)):
                raise

    def _compiled(self, graph: Graph) -> Model:
        cache = default_cache()
        package = compile_package(graph, target_here("cpu", None, cache), self._options, None, cache)
        return Model(package, threads=self._threads)

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Returns the outputs, by place or name, for *inputs* in the model's order, by name, or one alone."""
        _check_nothing_left(kwargs)
        feed = self._by_name(inputs)
        model = self._model or self._for_held(feed)
        tensors = {name: v for name, held in feed.items() for name, v in _tensors(name, held)}
        found = dict(
            zip([s.name for s in model.outputs], model.run([tensors[s.name] for s in model.inputs]), strict=True)
        )
        made: tuple[Any, ...] = self._outputs(*[self._output(o.name, found) for o in self._proto.graph.output])
        return made

    def _output(self, name: str, found: Mapping[str, Array]) -> Any:
        """Returns an output: an array, a list of them for a sequence, or None for an optional value that is absent."""
        if name in found:
            return found[name]
        parts = [p for k in range(len(found)) if (p := part_name(name, k)) in found]
        return [found[p] for p in parts] if parts or name in self._sequences else None

    def _by_name(self, inputs: Any) -> dict[str, Any]:
        if isinstance(inputs, Mapping):
            given = dict(inputs)
        else:
            values = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
            if len(values) != len(self.names):
                raise InputError(
                    f"{len(values)} inputs were given, and the model has {len(self.names)}",
                    hint=f"give {', '.join(self.names) or 'none'}",
                )
            given = dict(zip(self.names, values, strict=True))
        missing = [name for name in self.names if name not in given]
        if missing:
            raise InputError(f"missing inputs: {', '.join(missing)}", hint=f"give {', '.join(self.names)}")
        return {name: self._converted(name, v) for name, v in given.items()}

    def _converted(self, name: str, value: Any) -> Any:
        """Returns numbers, and lists of them, as arrays; a sequence as a list of arrays."""
        if name in self._sequences:
            return value if value is None else [np.asarray(v) for v in value]
        return np.asarray(value) if isinstance(value, int | float | list | np.generic) else value

    def _for_held(self, feed: Mapping[str, Any]) -> Model:
        """Returns the model for what sequences and optional values hold, and for the integers that tell how much they will."""
        fixed: dict[str, Array] = {n: a for n, a in feed.items() if isinstance(a, np.ndarray) and a.dtype.kind in "iub"}
        shapes = {name: _shape(a) for name, a in feed.items() if name not in fixed}
        key = (*[(n, a.dtype.str, a.shape, a.tobytes()) for n, a in fixed.items()], *shapes.items())
        if key not in self._by_held:
            self._by_held[key] = self._compiled(from_onnx(self._proto, shapes, fixed))
        self._by_held.move_to_end(key)
        if len(self._by_held) > MOST_KEPT:
            self._by_held.popitem(last=False)
        return self._by_held[key]


def holds_tensors(info: ValueInfoProto) -> bool:
    """Tells whether a value is a sequence or optional."""
    kind, _, is_optional = kind_of(info.type)
    return is_optional or kind == "sequence_type"


def _is_sequence(info: ValueInfoProto) -> bool:
    return kind_of(info.type)[0] == "sequence_type"


def _tensors(name: str, held: Any) -> list[tuple[str, Any]]:
    """Returns the tensors of an input by the names that the compiled model has for them."""
    if isinstance(held, list):
        return [(part_name(name, k), v) for k, v in enumerate(held)]
    return [] if held is None else [(name, held)]


def _shape(held: Any) -> Any:
    """Returns the shape of an array, the shapes of a sequence, or None for an optional input that is absent."""
    if isinstance(held, list):
        return tuple([tuple(np.shape(v)) for v in held])
    return None if held is None else tuple(np.shape(held))


def _check_nothing_left(more: Mapping[str, Any]) -> None:
    """Raises `InputError` for an argument that has no effect."""
    unknown = [name for name in more if name not in _NOT_OURS]
    if unknown:
        raise InputError(f"the argument {unknown[0]!r} can't be honoured", hint="see help(weft.backend.prepare)")


class WeftBackend(Backend):
    """Runs ONNX models and single nodes on the processor."""

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Tells whether *device* is the processor."""
        return device in ("CPU", "CPU:0")

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Tells whether Weft has all operators of *model*, which it may still refuse for other reasons."""
        try:
            _ = from_onnx(model)
        except UnsupportedOperators:
            return False
        except ModelError:
            return True
        return cls.supports_device(device)

    @classmethod
    def prepare(
        cls,
        model: ModelProto,
        device: str = "CPU",
        *,
        threads: int | None = None,
        opt_level: int = 3,
        precision: str = "model",
        **kwargs: Any,
    ) -> WeftRep:
        """Compiles *model*; the arguments are those of `weft.compile`.

        Raises `ModelError` for a model that can't be compiled, `InputError` for another device or an unknown argument.
        """
        _check_device(device)
        _check_nothing_left(kwargs)
        return WeftRep(model, threads, {"opt_level": opt_level, "precision": precision})

    @classmethod
    def run_model(cls, model: ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """Compiles *model* and runs it once; the arguments are those of `prepare`."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(  # type: ignore[override] # an option is no dictionary, as the base has it
        cls,
        node: NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype[Any], tuple[int, ...]]] | None = None,
        *,
        opset_version: int | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Runs one node: *inputs* in the order of those it has, or by name.

        *outputs_info*, the types and shapes that outputs are to have, is checked. Raises `ModelError` and `InputError`.
        """
        names = [name for name in node.input if name]
        values = [inputs[n] for n in names] if isinstance(inputs, Mapping) else [v for v in inputs if v is not None]
        if len(values) != len(names):
            raise InputError(
                f"{len(values)} inputs were given, and the node has {len(names)}: {', '.join(names)}",
                hint="give one for each name",
            )
        feed = {name: np.asarray(value) for name, value in zip(names, values, strict=True)}
        made = cls.run_model(_model_of(node, feed, opset_version), feed, device, **kwargs)
        for array, (dtype, shape) in zip(made, outputs_info or (), strict=False):
            if (array.dtype, array.shape) != (np.dtype(dtype), tuple(shape)):
                raise ModelError(
                    f"{node.op_type} makes {array.dtype}{list(array.shape)}, not {np.dtype(dtype)}{list(shape)}",
                    hint="change what the call says of its outputs",
                )
        return made


def _check_device(device: str) -> None:
    if not WeftBackend.supports_device(device):
        raise InputError(f"there is no device {device!r}", hint="use 'CPU'")


def _model_of(node: NodeProto, feed: Mapping[str, Array], opset_version: int | None) -> ModelProto:
    """Returns a model of one node, for inputs like those in *feed*."""
    types = {n: onnx.helper.np_dtype_to_tensor_dtype(a.dtype) for n, a in feed.items()}
    inputs = [onnx.helper.make_tensor_value_info(n, types[n], a.shape) for n, a in feed.items()]
    outputs = [ValueInfoProto(name=name) for name in node.output if name]
    graph = onnx.helper.make_graph([node], node.op_type, inputs, outputs)
    newest = onnx.defs.onnx_opset_version() if node.domain in ("", "ai.onnx") else 1
    opset = onnx.helper.make_opsetid(node.domain, opset_version or newest)
    return onnx.helper.make_model(graph, opset_imports=[opset])
