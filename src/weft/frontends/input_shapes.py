"""The shapes of a model's inputs: declared, symbolic, or given by the user."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from weft.graph import Graph
from weft.ir import ExprLike
from weft.support.dim import Dim
from weft.support.errors import ModelError
from weft.support.text import printable_line

Size: TypeAlias = int | str | Dim
Declared: TypeAlias = Sequence[int | str | Dim | None]

_NOT_IN_A_NAME: Final = re.compile(r"\W+")


class InputShapes:
    """Sizes that the user gives, or ranges of them: to symbolic dimensions by name, or whole shapes to inputs.

    A dimension's name is that in the model, or that of its symbolic size in the graph, which messages and `Model.inputs` show.
    *ranges* are those that the model itself declares, by the name of the dimension.
    """

    def __init__(
        self, given: Mapping[str, int | Dim | Sequence[Size]], ranges: Mapping[str, Dim] | None = None
    ) -> None:
        self.of_input = {k: tuple(v) for k, v in given.items() if not isinstance(v, int | Dim)}
        self.of_dimension = {k: v for k, v in given.items() if isinstance(v, int | Dim)}
        self.ranges = ranges or {}

    def resolve(self, declared: Mapping[str, Declared | None], graph: Graph) -> dict[str, tuple[ExprLike, ...]]:
        """Returns the shape of each input that a model declares, by name; symbolic sizes become those of *graph*.

        A declared size is a number, a name, or None where it has neither; None for a shape says that not even the number of
        dimensions is known. Raises `ModelError` for sizes given that do not fit those declared.
        """
        declared = {name: None if shape is None else _with_names(name, shape) for name, shape in declared.items()}
        shapes = [*declared.items(), *self.of_input.items()]
        sizes_of = [(name, d, s) for name, shape in shapes for d, s in enumerate(shape or ())]
        symbols = _symbols([_called(name, d, s) for name, d, s in sizes_of if not isinstance(s, int)])
        self._take_names_of_symbols(symbols)
        self._check_names(declared)
        for name, sizes in declared.items():
            if sizes is None and name not in self.of_input:
                raise ModelError(
                    f"the model does not say how many dimensions the input {name!r} has",
                    hint=f'give its shape: shapes={{"{name}": (1, 3, 224, 224)}}',
                )
        for name, shape in self.of_input.items():
            self._bind(name, declared[name], shape)
        wanted = {name: _named(self.of_input.get(name, shape), shape) for name, shape in declared.items()}
        return {name: self._sizes(name, shape or (), graph, symbols) for name, shape in wanted.items()}

    def _take_names_of_symbols(self, symbols: Mapping[str, str]) -> None:
        """Lets sizes that are given by the names of *symbols* be given by those that the model has for the dimensions."""
        dimensions = {symbol: text for text, symbol in symbols.items()}
        given, self.of_dimension = self.of_dimension, {}
        for key, size in given.items():
            self._note(key if key in symbols else dimensions.get(key, key), size)

    def _check_names(self, declared: Mapping[str, Declared | None]) -> None:
        names = sorted({s for shape in declared.values() for s in shape or () if isinstance(s, str)})
        for key, known in [(k, declared) for k in self.of_input] + [(k, names) for k in self.of_dimension]:
            if key not in known:
                raise ModelError(
                    f"shapes has {key!r}, which is no {'input' if known is declared else 'symbolic dimension'} of the model",
                    hint=f"inputs: {_listed(declared)}; symbolic dimensions: {_listed(names)}",
                )

    def _bind(self, name: str, declared: Declared | None, given: tuple[Size, ...]) -> None:
        """Notes the numbers and ranges that a given shape has for dimensions that are symbolic in the model."""
        if declared is None:
            return
        if len(declared) != len(given):
            raise ModelError(
                f"shapes gives the input {name!r} {len(given)} dimensions, but it has {len(declared)}: {_text(declared)}",
                hint="give as many sizes as the model declares",
            )
        for size, number in zip(declared, given, strict=True):
            if isinstance(size, str) and isinstance(number, int | Dim):
                self._note(size, number)

    def _note(self, dimension: str, size: int | Dim) -> None:
        known = self.of_dimension.setdefault(dimension, size)
        if known != size:
            raise ModelError(
                f"shapes gives the dimension {dimension!r} both {known} and {size}", hint="give one size for each name"
            )

    def _sizes(self, name: str, shape: Declared, graph: Graph, symbols: Mapping[str, str]) -> tuple[ExprLike, ...]:
        """Returns the sizes of the input *name*: numbers, and symbolic ones of the graph."""
        made: list[ExprLike] = []
        for d, size in enumerate(shape):
            text = _called(name, d, size)
            known = self.of_dimension.get(text, self.ranges.get(text)) if isinstance(size, str) else size
            if isinstance(known, Dim) and known.only is not None:
                known = known.only
            if isinstance(known, int) and known < 0:
                raise ModelError(
                    f"the input {name!r} has a dimension of size {known}: {_text(shape)}",
                    hint="give it a size of 0 or more",
                )
            if isinstance(known, Dim):
                made.append(graph.bounded_dim(symbols[text], known))
            else:
                made.append(known if isinstance(known, int) else graph.dim(symbols[text]))
        return tuple(made)


def _called(name: str, d: int, size: Size | None) -> str:
    """Returns the name of dimension *d* of the input *name*: its *size*, if that is one, else a name made of both."""
    return size if isinstance(size, str) else dimension_name(name, d)


def dimension_name(name: str, d: int) -> str:
    """Returns the name of dimension *d* of the input *name* where the model has none for it."""
    return f"{name}_dim{d}"


def _with_names(name: str, shape: Declared) -> Declared:
    """Returns the shape of the input *name*, of which each dimension that the model does not name has one."""
    return [_called(name, d, s) if s is None else s for d, s in enumerate(shape)]


def _symbols(texts: Iterable[str]) -> dict[str, str]:
    """Returns the name of the symbolic size for each of *texts*: itself where it is a name. No two have the same."""
    made: dict[str, str] = {}
    for text in sorted(dict.fromkeys(texts), key=lambda t: _NOT_IN_A_NAME.search(t) is not None):
        name = _NOT_IN_A_NAME.sub("_", text)
        while name in made.values():
            name += "_"
        made[text] = name
    return made


def _named(given: Declared | None, declared: Declared | None) -> Declared | None:
    """Returns the shape *given*, in which a range goes by the name that the model has for the dimension, if it has one."""
    if given is None or declared is None:
        return given
    return [b if isinstance(a, Dim) and isinstance(b, str) else a for a, b in zip(given, declared, strict=True)]


def _listed(names: Iterable[str]) -> str:
    return printable_line(", ".join(names)) or "none"


def _text(shape: Declared) -> str:
    return f"({', '.join('?' if s is None else str(s) for s in shape)})"
