"""Tables that a model fills when it is loaded: the node that does so, and its keys and values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

import numpy as np

from weft.frontends.string_ids import StringIds, Strings
from weft.frontends.tensorflow.file.graph_def import FunctionDef, NodeDef
from weft.frontends.tensorflow.file.model_files import SourceModel, vocabulary_lines
from weft.frontends.tensorflow.node_order import node_of
from weft.frontends.tensorflow_operators.call import Held, Table
from weft.graph import Array
from weft.graph.builder import Builder, CompileTimeConstant
from weft.support.errors import ModelError

_FILLS: Final = (
    *("LookupTableImportV2", "LookupTableImport", "InitializeTableV2", "InitializeTable"),
    *("InitializeTableFromTextFileV2", "InitializeTableFromTextFile"),
)
_LINE, _NUMBER = -2, -1
"""The part of a file that is a key or a value: a whole line, or its number."""


@dataclass(frozen=True)
class Initializer:
    """A node that fills a table, the function that it is in, if any, and the tensors that this is called with."""

    node: NodeDef
    function: FunctionDef | None
    inputs: Sequence[str]


def initializer_of(source: SourceModel, table: NodeDef) -> Initializer:
    """Returns the initializer of a *table*; raises `ModelError` where the model has none."""
    for n in source.graph.nodes:
        if n.op in _FILLS and node_of(n.inputs[0]) == table.name:
            return Initializer(n, None, n.inputs)
        places = [k for k, i in enumerate(n.inputs) if node_of(i) == table.name]
        for f in [source.graph.functions[name] for name in n.functions() if places and name in source.graph.functions]:
            names = [f.arguments[k] for k in places if k < len(f.arguments)]
            for m in f.nodes:
                if m.op in _FILLS and m.inputs and node_of(m.inputs[0]) in names:
                    return Initializer(m, f, n.inputs)
    raise ModelError(
        "nothing in the model fills this table",
        where=f"{table.op} {table.name}",
        hint="save the model with a table that is made with its contents, such as a StaticHashTable",
    )


def filled(b: Builder, source: SourceModel, node: NodeDef, given: Sequence[Held], strings: StringIds) -> Table:
    """Returns the table that *node* fills with its inputs *given*: keys and values, or a file's name."""
    if "TextFile" in node.op:
        return _of_file(b, source, node, given, strings)
    keys, values = given
    return Table(_known(b, keys), _known(b, values), isinstance(values, Strings))


def _known(b: Builder, x: Held) -> Array:
    tensor = x.ids if isinstance(x, Strings) else x
    if not isinstance(tensor, CompileTimeConstant) or tensor.symbolic:
        b.fail("what it puts into a table is not known before the model runs", "fill the table with constants")
    return tensor.array.reshape(-1)


def _of_file(b: Builder, source: SourceModel, node: NodeDef, given: Sequence[Held], strings: StringIds) -> Table:
    name = list(strings.ids)[int(_known(b, given[0])[0])]
    path = None if source.assets is None else source.assets / PurePath(name).name
    if path is None or not path.is_file():
        b.fail(f"its file {PurePath(name).name!r} is not in the folder 'assets' of the model", "save the model again")
    lines, count = vocabulary_lines(path), int(node.attributes.get("vocab_size", -1))
    lines = lines if count < 0 else lines[:count]
    keys, values = (_side(b, node, name, lines, strings) for name in ("key_index", "value_index"))
    return Table(keys, values, node.attributes.get("value_index", _LINE) == _LINE)


def _side(b: Builder, node: NodeDef, name: str, lines: Sequence[str], strings: StringIds) -> Array:
    index = node.attributes.get(name, _LINE)
    if index == _LINE:
        return np.asarray(strings.of(lines), np.int64)
    if index != _NUMBER:
        b.fail(f"its {name} is {index}", "make the table of whole lines and their numbers")
    return np.arange(len(lines), dtype=np.int64) + int(node.attributes.get("offset", 0))
