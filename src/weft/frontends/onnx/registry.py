"""The table of ONNX operators that Weft imports: one entry each, made by decorating its translation.

@translates("Relu")
def relu(c: Call) -> Results:
    return c.add("relu", c.input(0))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias, TypeVar

from weft.frontends.onnx.call import Call, HeldResults, Results
from weft.support.registry import Registry

OLDEST_OPSET: Final = 1
NEWEST_OPSET: Final = 28
DEFAULT_DOMAIN: Final = ""

Translation: TypeAlias = Callable[[Call], Results]
HeldTranslation: TypeAlias = Callable[[Call], HeldResults]
"""A translation that may take, or make, sequences and optional values."""

F = TypeVar("F", bound=HeldTranslation)


@dataclass(frozen=True)
class Entry:
    """How one ONNX operator becomes Weft operators; `limits` names its unsupported cases in words.

    With `holds` it takes, or makes, sequences and optional values, too.
    """

    name: str
    translate: HeldTranslation
    limits: str = ""
    family: str = ""
    holds: bool = False


TABLE: Final = Registry[tuple[str, str], Entry]("ONNX operator")
"""Entries by domain and operator."""


@dataclass(frozen=True)
class StringEntry:
    """How an operator that has an `Entry`, too, is translated where one of its inputs, or an attribute, is of strings."""

    name: str
    translate: HeldTranslation
    holds: ClassVar[bool] = True


STRING_TABLE: Final = Registry[tuple[str, str], StringEntry]("ONNX operator on strings")
"""Entries by domain and operator."""


def translates_strings(*names: str, domain: str = DEFAULT_DOMAIN) -> Callable[[F], F]:
    """Enters the decorated function as the translation of the operators *names* where strings are among their elements."""

    def enter(translate: F) -> F:
        for name in names:
            STRING_TABLE[domain, name] = StringEntry(name, translate)
        return translate

    return enter


def translates(*names: str, limits: str = "", domain: str = DEFAULT_DOMAIN, holds: bool = False) -> Callable[[F], F]:
    """Enters the decorated function as the translation of the operators *names*; the others are fields of `Entry`."""

    def enter(translate: F) -> F:
        family = translate.__module__.rpartition(".")[2]
        for name in names:
            if (domain, name) in TABLE:
                raise ValueError(f"{name} has two translations")
            TABLE[domain, name] = Entry(name, translate, limits, family, holds)
        return translate

    return enter
