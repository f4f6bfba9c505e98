"""From a program of Core ML (MIL) to a graph: its inputs, and each operation by its translation in the table.

program   ::= functions by name, of which `main` is taken, or the only one
function  ::= inputs, and blocks by operation set
block     ::= operations, and the names of its results
operation ::= results = type(inputs by name), with blocks for branches and loops
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from weft.frontends.coreml import ops
from weft.frontends.coreml.blob_file import BlobFile
from weft.frontends.coreml.call import AGAIN, Block, Call, Label, State
from weft.frontends.coreml.registry import TABLE
from weft.frontends.coreml.values import read_literal, state_of, type_of
from weft.frontends.fitting import fitting
from weft.frontends.frontend import Shapes
from weft.frontends.input_shapes import InputShapes
from weft.frontends.protobuf_message import Message
from weft.frontends.unsupported import unsupported_operators
from weft.frontends.wire_format import Malformed
from weft.graph import Graph, declare_states
from weft.graph.builder import Builder, Operand, PartialEvaluator
from weft.support.dtypes import DType
from weft.support.errors import ModelError
from weft.support.lazy_import import import_all

import_all(ops.__path__, ops.__name__)
TABLE.seal()

MAIN: Final = "main"
CONST: Final = "const"
MOST_OPERATIONS: Final = 200_000


def import_program(program: Message, graph: Graph, blobs: BlobFile, shapes: Shapes | None) -> Graph:
    """Returns *graph* with a program; its states are the graph's, of the same names."""
    functions = dict(program.entries(2))
    function = functions.get(MAIN) or (next(iter(functions.values())) if len(functions) == 1 else None)
    if function is None:
        raise ModelError(f"the program has no function {MAIN!r}", hint="convert it with one function")
    blocks = dict(function.entries(3))
    block = blocks.get(function.text(2)) or next(iter(blocks.values()), None)
    if block is None:
        raise ModelError("the program's function has no operations", hint=AGAIN)
    _check_operations(block)
    return _Importer(graph, blobs).run(function, block, shapes)


def _check_operations(block: Message) -> None:
    """Raises `UnsupportedOperators` for the operations that are not in the table."""
    missing: dict[str, list[str]] = {}
    for o in _operations(block):
        kind = o.text(1)
        if kind not in TABLE and kind != CONST:
            missing.setdefault(kind, []).append(_name_of(o))
    if missing:
        raise unsupported_operators(dict(sorted(missing.items())), "build the model from other operations")


def _operations(block: Message) -> Iterator[Message]:
    for o in block.messages(3):
        yield o
        for inner in o.messages(4):
            yield from _operations(inner)


def _name_of(o: Message) -> str:
    """Names an operation by its first result."""
    first = next(o.messages(3), None)
    return "" if first is None else first.text(1)


class _Importer:
    def __init__(self, graph: Graph, blobs: BlobFile) -> None:
        self.graph, self.blobs = graph, blobs
        self.evaluator = PartialEvaluator(graph)
        self.imported = 0

    def run(self, function: Message, block: Message, shapes: Shapes | None) -> Graph:
        """Imports the function."""
        scope: ChainMap[str, Any] = ChainMap({})
        types = {m.text(1): _input_type(m) for m in function.messages(1)}
        found = InputShapes(shapes or {}).resolve({n: shape for n, (shape, _, _) in types.items()}, self.graph)
        states: dict[str, State] = {}
        for name, (_, dtype, is_state) in types.items():
            value = self.graph.input(name, found[name], dtype)
            if is_state:
                states[name] = State(value, self.evaluator)
            scope[name] = states.get(name, value)
        for name, y in zip(block.texts(2), self._block(block, self.evaluator, scope), strict=True):
            if not isinstance(y, Label):
                self.graph.output(self.evaluator.value(y), name)
        return self._with_states(states)

    def _with_states(self, states: Mapping[str, State]) -> Graph:
        """Returns the graph with its states, whose values at the end of a call are left for the next."""
        left: dict[str, str] = {}
        for name, state in states.items():
            left[name] = self.graph.fresh_name(f"{name}_next")
            self.graph.output(self.evaluator.value(state.value), left[name])
        return declare_states(self.graph, left, {}) if left else self.graph

    def _block(self, block: Message, evaluator: PartialEvaluator, scope: ChainMap[str, Any]) -> list[Any]:
        """Imports the operations of a block, and returns its results."""
        for o in block.messages(3):
            self._operation(o, evaluator, scope)
        return [_read(scope, name, "the results of a block") for name in block.texts(2)]

    def _operation(self, o: Message, evaluator: PartialEvaluator, scope: ChainMap[str, Any]) -> None:
        """Imports an operation, and adds its results to those that others may use."""
        kind, results = o.text(1), [*o.messages(3)]
        source = f"{kind} {_name_of(o)}"
        self.imported += 1
        if self.imported > MOST_OPERATIONS:
            raise ModelError(f"the program has more than {MOST_OPERATIONS} operations", where=source, hint=AGAIN)
        if kind == CONST:
            if results:
                scope[results[0].text(1)] = self._constant(o, source)
            return
        given = {key: self._argument(argument, scope, source) for key, argument in o.entries(2)}
        attributes = {k: self._literal(v, source) for k, v in o.entries(5) if k not in ("name", "val")}
        blocks = [self._as_block(b, scope) for b in o.messages(4)]
        c = Call(evaluator, source, {**attributes, **given}, [type_of(r.inner(2)) for r in results], blocks)
        self.graph.is_extended |= TABLE.is_foreign(kind)
        made = self._translated(kind, c, source)
        if len(made) != len(results):
            raise ModelError(f"it has {len(results)} results, and should have {len(made)}", where=source, hint=AGAIN)
        scope.update(zip((r.text(1) for r in results), made, strict=True))

    def _translated(self, kind: str, c: Call, source: str) -> tuple[Operand | Label, ...]:
        with fitting(source, "inputs", AGAIN):
            made = TABLE[kind](c)
        return made if isinstance(made, tuple) else (made,)

    def _as_block(self, block: Message, scope: ChainMap[str, Any]) -> Block:
        names = [m.text(1) for m in block.messages(1)]

        def run(b: Builder, given: Sequence[Operand]) -> list[Operand]:
            bound = scope.new_child(dict(zip(names, given, strict=True)))
            return self._block(block, b.evaluator, bound)

        return run

    def _argument(self, argument: Message, scope: ChainMap[str, Any], source: str) -> Any:
        """Returns an input: a value, or a list of them where several are bound."""
        made: list[Any] = []
        for binding in argument.messages(1):
            literal = binding.message(2)
            if literal is not None:
                made.append(self._literal(literal, source))
            else:
                made.append(_read(scope, binding.text(1), source))
        return made[0] if len(made) == 1 else tuple(made)

    def _constant(self, o: Message, source: str) -> Any:
        values = [*o.entries(5), *[(k, b.inner(2)) for k, a in o.entries(2) for b in a.messages(1)]]
        found = next((v for k, v in values if k == "val"), None)
        if found is None:
            raise ModelError("it has no value", where=source, hint=AGAIN)
        return self._literal(found, source)

    def _literal(self, m: Message, source: str) -> Any:
        try:
            return read_literal(m, self.blobs, source.partition(" ")[2])
        except Malformed as error:
            raise ModelError(
                "a constant is damaged, of a type that is not supported, or not in the file of weights",
                where=source,
                hint="copy the whole model again, weights/weight.bin included",
            ) from error


def _read(scope: ChainMap[str, Any], name: str, source: str) -> Any:
    if name not in scope:
        raise ModelError(f"it uses {name!r}, which nothing before it makes", where=source, hint=AGAIN)
    return scope[name]


def _input_type(m: Message) -> tuple[tuple[int | None, ...], DType, bool]:
    """Returns the shape and the elements of an input, and whether it is a state."""
    state = state_of(m.inner(2))
    found = state or type_of(m.inner(2))
    if found is None or found.dtype is None:
        raise ModelError(
            "inputs other than tensors of numbers, and states of them, are not supported",
            where=f"input {m.text(1)}",
            hint="convert the model with tensors for inputs",
        )
    return found.shape, found.dtype, state is not None
