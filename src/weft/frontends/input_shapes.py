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
        return {name: self._sizes(name, shape or (), graph) for name, shape in wanted.items()}

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
                if self.of_dimension.setdefault(size, number) != number:
                    raise ModelError(
                        f"shapes gives the dimension {size!r} both {self.of_dimension[size]} and {number}",
                        hint="give one size for each name",
                    )

    def _sizes(self, name: str, shape: Declared, graph: Graph) -> tuple[ExprLike, ...]:
        """Returns the sizes of the input *name*: numbers, and symbolic ones of the graph."""
        made: list[ExprLike] = []
        for d, size in enumerate(shape):
            text = size if isinstance(size, str) else f"{name}_dim{d}"
            known = self.of_dimension.get(text, self.ranges.get(text)) if isinstance(size, str) else size
            if isinstance(known, Dim) and known.only is not None:
                known = known.only
            if isinstance(known, int) and known < 0:
                raise ModelError(
                    f"the input {name!r} has a dimension of size {known}: {_text(shape)}",
                    hint="give it a size of 0 or more",
                )
            text = _NOT_IN_A_NAME.sub("_", text)
            if isinstance(known, Dim):
                made.append(graph.bounded_dim(text, known))
            else:
                made.append(known if isinstance(known, int) else graph.dim(text))
        return tuple(made)


def _named(given: Declared | None, declared: Declared | None) -> Declared | None:
    """Returns the shape *given*, in which a range goes by the name that the model has for the dimension, if it has one."""
    if given is None or declared is None:
        return given
    return [b if isinstance(a, Dim) and isinstance(b, str) else a for a, b in zip(given, declared, strict=True)]


def _listed(names: Iterable[str]) -> str:
    return printable_line(", ".join(names)) or "none"


def _text(shape: Declared) -> str:
    return f"({', '.join('?' if s is None else str(s) for s in shape)})"
