"""From a module of StableHLO to a graph: the inputs of its main function, and each operation by its translation in the table."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from weft.frontends.fitting import fitting
from weft.frontends.frontend import Shapes
from weft.frontends.input_shapes import Declared, InputShapes, dimension_name
from weft.frontends.jax import ops
from weft.frontends.jax.call import AGAIN, Call
from weft.frontends.jax.ops.reducers import reducer_in
from weft.frontends.jax.registry import TABLE, key_of
from weft.frontends.jax.text.asserted_sizes import equal_sizes
from weft.frontends.jax.text.complex_pairs import without_complex
from weft.frontends.jax.text.operations import Function, Module, Operation, Region, TensorText, tensor_type
from weft.frontends.jax.text.tuples import without_tuples
from weft.frontends.unsupported import unsupported_operators
from weft.graph import Array, Graph
from weft.graph.builder import Builder, CompileTimeConstant, Operand, PartialEvaluator
from weft.runtime.metadata import ModelMetadata
from weft.support.errors import ModelError
from weft.support.lazy_import import import_all

import_all(ops.__path__, ops.__name__)
TABLE.seal()

MAIN: Final = "main"
RETURNS: Final = "return"
MOST_OPERATIONS: Final = 500_000
"""Operations that are imported at most: functions that call one another multiply them."""

DEEPEST: Final = 100
"""How many functions and regions may be inside of one another."""


def from_stablehlo(
    module: Module, shapes: Shapes | None = None, weights: Sequence[Array] = (), names: Sequence[str] = ()
) -> Graph:
    """Imports the function `main` of a module; functions that it calls are written out.

    The first arguments are *weights*, constants of the graph. The others are inputs, which have *names*, if these are given, or
    those that JAX gives them, else those of the text (`arg0`). Dimensions of sizes that the text does not say are symbolic;
    *shapes* gives sizes to them, or whole shapes to inputs. Complex numbers are real tensors [..., 2].

    Raises `ModelError` naming the operation, its line in the text, and in the user's program where the text says it, and
    `UnsupportedOperators` listing every operation that Weft does not have.
    """
    try:
        real = without_complex(without_tuples(module))
        public = real.functions.get(MAIN) or next(iter(real.functions.values()))
        _check_operations(real, public)
        return _Importer(real).run_main(public, shapes, weights, names)
    except RecursionError as error:
        raise ModelError("the functions call one another too deeply", hint=AGAIN) from error


def _check_operations(module: Module, main: Function) -> None:
    """Raises `UnsupportedOperators` for the operations that are not in the table."""
    missing: dict[str, list[str]] = {}
    for o in _reached(module, main):
        key = key_of(o)
        if key not in TABLE and key != RETURNS:
            missing.setdefault(_shown(o, key), []).append(_place(module, o))
    if missing:
        hint = "write the function with others"
        raise unsupported_operators(dict(sorted(missing.items())), hint)


def _shown(o: Operation, key: str) -> str:
    return f"{o.name}{key.removeprefix('custom_call')}" if key.startswith("custom_call") else o.name


def _place(module: Module, o: Operation) -> str:
    """Says where an operation stands: its name and line in the program, or its line in the text."""
    name, line = module.locations.name_of(o.location), module.locations.line_of(o.location)
    return " ".join(filter(None, [name, f"({line})" if line else f"(line {o.line})"]))


def _of_parts(a: Array) -> Array:
    """Returns an array, one of complex numbers as real ones [..., 2]."""
    return np.stack([a.real, a.imag], -1) if np.iscomplexobj(a) else a


def _reached(module: Module, main: Function) -> Iterator[Operation]:
    """Yields the operations of the functions that are called."""
    waiting, seen = [main.body], {main.name}
    while waiting:
        for o in waiting.pop().operations:
            yield o
            waiting += o.regions
            for name in callees(o):
                if name in module.functions and name not in seen:
                    seen.add(name)
                    waiting.append(module.functions[name].body)


def callees(o: Operation) -> list[str]:
    """Returns the functions that an operation calls."""
    found = [o.attributes.get(n) for n in ("callee", "decomposition")]
    named = [*o.words[:1], *[str(f) for f in found if f]]
    return named if key_of(o) in ("call", "composite") else []


def _with_equal_sizes(
    main: Function, shapes: Mapping[str, tuple[int | None, ...]], arguments: Sequence[str]
) -> dict[str, Declared]:
    """Returns the shapes of inputs, in which sizes that the text asserts to be equal have one name."""
    declared: dict[str, Declared] = {}
    first, names = equal_sizes(main.body), dict(zip(arguments, shapes, strict=True))
    for argument, name in names.items():
        sizes: list[int | str | None] = [*shapes[name]]
        for d, size in enumerate(sizes):
            other, k = first.get((argument, d), (argument, d))
            if size is None and other in names:
                sizes[d] = dimension_name(names[other], k)
        declared[name] = sizes
    return declared


class _Importer:
    """The program that calls are imported from."""

    def __init__(self, module: Module) -> None:
        self.module, self.resources = module, module.resources
        self.graph = Graph("main")
        self.graph.metadata = ModelMetadata(producer_name="jax", graph_name=module.name.removeprefix("jit_"))
        self.imported = self.depth = 0

    def run_main(self, main: Function, shapes: Shapes | None, weights: Sequence[Array], names: Sequence[str]) -> Graph:
        """Imports the whole program."""
        b = Builder(PartialEvaluator(self.graph), main.name)
        held = [CompileTimeConstant(_of_parts(a), f"weight{k}") for k, a in enumerate(weights)]
        made = self._called(main, [*held, *self._inputs(main, len(weights), names, shapes)], b)
        taken: set[str] = set()
        for k, y in enumerate(made):
            told = main.results[k].get("jax.result_info") if k < len(main.results) else None
            name = told if isinstance(told, str) and told and told not in taken else f"result{k}"
            taken.add(name)
            self.graph.output(b.evaluator.value(y), name)
        return self.graph

    def _inputs(self, main: Function, held: int, given: Sequence[str], shapes: Shapes | None) -> list[Operand]:
        """Declares the inputs, by the names that are *given*, or that JAX gives them; the first arguments are *held* weights."""
        arguments = main.arguments[held:]
        names: list[str] = []
        for k, a in enumerate(arguments):
            told = given[k] if k < len(given) else self.module.locations.name_of(a.location)
            names.append(told if told and told not in names else a.name[1:])
        types = {n: self._input_type(n, a.type) for n, a in zip(names, arguments, strict=True)}
        declared = _with_equal_sizes(main, {n: t.shape for n, t in types.items()}, [a.name for a in arguments])
        found = InputShapes(shapes or {}).resolve(declared, self.graph)
        return [self.graph.input(n, found[n], t.dtype) for n, t in types.items() if t.dtype is not None]

    def _input_type(self, name: str, type_: str) -> TensorText:
        found = tensor_type(type_)
        if found is None or found.dtype is None:
            raise ModelError(
                f"inputs of type {type_} are not supported", where=f"input {name}", hint="give tensors of real numbers"
            )
        return found

    def run(self, function: str, given: Sequence[Operand], b: Builder) -> list[Operand]:
        """Returns the results of a function of the module, written out."""
        found = self.module.functions.get(function)
        if found is None:
            b.fail(f"it calls {function!r}, which the text does not have", AGAIN)
        return self._called(found, given, b)

    def reducer(self, function: str) -> str | None:
        """Returns the name of the operation by which a function combines two numbers; None if it is none alone."""
        found = self.module.functions.get(function)
        return None if found is None else reducer_in(found.body)

    def run_region(
        self, o: Operation, k: int, given: Sequence[Operand], b: Builder, around: Mapping[str, Operand]
    ) -> list[Operand]:
        """Returns the results of a region, written out."""
        if k >= len(o.regions):
            b.fail(f"it has {len(o.regions)} regions", AGAIN)
        return self._body(o.regions[k], given, b, around)

    def _called(self, function: Function, given: Sequence[Operand], b: Builder) -> list[Operand]:
        return self._body(function.body, given, b, {})

    def _body(
        self, region: Region, given: Sequence[Operand], b: Builder, around: Mapping[str, Operand]
    ) -> list[Operand]:
        """Imports the operations of a function or region, and returns the operands of its terminator."""
        if len(given) != len(region.arguments):
            b.fail(f"it gives {len(given)} values for {len(region.arguments)} arguments", AGAIN)
        self.depth += 1
        if self.depth > DEEPEST:
            b.fail(f"functions and regions are more than {DEEPEST} inside of one another", AGAIN)
        scope: ChainMap[str, Operand] = ChainMap(dict(zip(region.arguments, given, strict=True)), dict(around))
        for o in region.operations[:-1]:
            self._operation(o, b.evaluator, scope)
        self.depth -= 1
        return [self._read(name, region.operations[-1], scope) for name in region.operations[-1].operands]

    def _operation(self, o: Operation, evaluator: PartialEvaluator, scope: ChainMap[str, Operand]) -> None:
        """Imports an operation, and adds its results to those that others may use."""
        self.imported += 1
        source = self._source(o)
        if self.imported > MOST_OPERATIONS:
            raise ModelError(
                f"more than {MOST_OPERATIONS} operations are written out", where=source, hint="call fewer functions"
            )
        for name in o.operands:
            self._read(name, o, scope)
        key = key_of(o)
        self.graph.is_extended |= TABLE.is_foreign(key)
        with fitting(source, "attributes and operands", AGAIN):
            made = TABLE[key](Call(evaluator, o, source, scope, self))
        results = made if isinstance(made, tuple) else (made,)
        if len(results) != len(o.results) and o.results:
            raise ModelError(f"it has {len(results)} results, and {len(o.results)} names", where=source, hint=AGAIN)
        scope.maps[0].update(zip(o.results, results, strict=False))

    def _read(self, name: str, o: Operation, scope: Mapping[str, Operand]) -> Operand:
        if name not in scope:
            raise ModelError(f"it uses {name}, which nothing before it makes", where=self._source(o), hint=AGAIN)
        return scope[name]

    def _source(self, o: Operation) -> str:
        """Names an operation in messages."""
        return f"{key_of(o)} {_place(self.module, o)}"
