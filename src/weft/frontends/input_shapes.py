"""The shapes of a model's inputs: declared, symbolic, or given by the user."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from weft.graph import Graph
from weft.ir import ExprLike
from weft.support.errors import ModelError
from weft.support.text import printable_line

Size: TypeAlias = int | str
Declared: TypeAlias = Sequence[int | str | None]

_NOT_IN_A_NAME: Final = re.compile(r"\W+")


class InputShapes:
    """Sizes that the user gives: to symbolic dimensions by name, or whole shapes to inputs."""

    def __init__(self, given: Mapping[str, int | Sequence[Size]]) -> None:
        self.of_input = {k: tuple(v) for k, v in given.items() if not isinstance(v, int)}
        self.of_dimension = {k: v for k, v in given.items() if isinstance(v, int)}

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
        wanted = {name: self.of_input.get(name, shape) for name, shape in declared.items()}
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
        """Notes the numbers that a given shape has for dimensions that are symbolic in the model."""
        if declared is None:
            return
        if len(declared) != len(given):
            raise ModelError(
                f"shapes gives the input {name!r} {len(given)} dimensions, but it has {len(declared)}: {_text(declared)}",
                hint="give as many sizes as the model declares",
            )
        for size, number in zip(declared, given, strict=True):
            if isinstance(size, str) and isinstance(number, int):
                if self.of_dimension.setdefault(size, number) != number:
                    raise ModelError(
                        f"shapes gives the dimension {size!r} both {self.of_dimension[size]} and {number}",
                        hint="give one size for each name",
                    )

    def _sizes(self, name: str, shape: Sequence[int | str | None], graph: Graph) -> tuple[ExprLike, ...]:
        made: list[ExprLike] = []
        for d, size in enumerate(shape):
            known = self.of_dimension.get(size, size) if isinstance(size, str) else size
            if isinstance(known, int) and known < 0:
                raise ModelError(
                    f"the input {name!r} has a dimension of size {known}: {_text(shape)}",
                    hint="give it a size of 0 or more",
                )
            text = known if isinstance(known, str) else f"{name}_dim{d}"
            made.append(known if isinstance(known, int) else graph.dim(_NOT_IN_A_NAME.sub("_", text)))
        return tuple(made)


def _listed(names: Iterable[str]) -> str:
    return printable_line(", ".join(names)) or "none"


def _text(shape: Sequence[int | str | None]) -> str:
    return f"({', '.join('?' if s is None else str(s) for s in shape)})"
