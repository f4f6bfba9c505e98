"""The standard interface `onnx.backend`, by which ONNX's own tests, among others, run a model."""

from __future__ import annotations

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
from weft.frontends.onnx.held import kind_of
from weft.frontends.onnx.held_inputs import Given
from weft.frontends.onnx.importer import from_onnx
from weft.graph import Graph
from weft.runtime.arrays import Array
from weft.runtime.held_values import tensors_given, value_made
from weft.runtime.model import Model
from weft.support.errors import InputError, ModelError, UnsupportedOperators

_NOT_OURS: Final = ("rtol", "atol")
"""The options that ONNX's test runner passes on to every function, for its own comparison of the results."""


class WeftRep(BackendRep):
    """A model that is ready to be run; `run` compiles nothing.

    Sequences and optional values are tensors in a compiled model, which `weft.runtime.held_values` makes of them.
    """

    def __init__(
        self,
        proto: ModelProto,
        threads: int | None,
        options: Mapping[str, Any],
        shapes: Mapping[str, Given] | None = None,
    ) -> None:
        """Compiles the model; raises `ModelError` if that is not possible."""
        weights = {t.name for t in proto.graph.initializer} | {t.values.name for t in proto.graph.sparse_initializer}
        self.names = [i.name for i in proto.graph.input if i.name not in weights]
        self._sequences = {i.name for i in (*proto.graph.input, *proto.graph.output) if _is_sequence(i)}
        self._made = [o.name for o in proto.graph.output]
        self._outputs = namedtupledict("Outputs", self._made)
        self._threads = threads
        self._options = check_options(**options)
        self._model = self._compiled(from_onnx(proto, shapes))

    def _compiled(self, graph: Graph) -> Model:
        cache = default_cache()
        package = compile_package(graph, target_here("cpu", None, cache), self._options, None, cache)
        return Model(package, threads=self._threads)

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Returns the outputs, by place or name, for *inputs* in the model's order, by name, or one alone."""
        _check_nothing_left(kwargs)
        specs = {s.name: s for s in self._model.inputs}
        tensors = {name: v for n, held in self._by_name(inputs).items() for name, v in tensors_given(n, held, specs)}
        made = self._model.run([tensors[s.name] for s in self._model.inputs])
        found = dict(zip([s.name for s in self._model.outputs], made, strict=True))
        results = [value_made(name, found, is_sequence=name in self._sequences) for name in self._made]
        outputs: tuple[Any, ...] = self._outputs(*results)
        return outputs

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


def _is_sequence(info: ValueInfoProto) -> bool:
    return kind_of(info.type)[0] == "sequence_type"


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
        shapes: Mapping[str, Given] | None = None,
        **kwargs: Any,
    ) -> WeftRep:
        """Compiles *model*; the arguments are those of `weft.compile`.

        Raises `ModelError` for a model that can't be compiled, `InputError` for another device or an unknown argument.
        """
        _check_device(device)
        _check_nothing_left(kwargs)
        return WeftRep(model, threads, {"opt_level": opt_level, "precision": precision}, shapes)

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
