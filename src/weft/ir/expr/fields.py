"""The fields of a node class, classified by the classes that their annotations name, once, when the class is made.

A field is a sub-node, an optional or a repeated one, or a leaf: a plain value (a string, a number, a member of an enumeration, a
tuple of these), or an object of a class that declares itself a leaf:

    class Buffer:
        __leaf__ = "identity"        # equal only to itself; "value" where it has an equality and a hash of its own

A field that these rules do not classify is refused: a field taken for a leaf by mistake would hide the nodes in it from every
walker.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum
from inspect import get_annotations
from types import EllipsisType, NoneType, UnionType
from typing import Any, Final, TypeAlias, Union, get_args, get_origin

Hint: TypeAlias = Any
"""A resolved annotation: a class, or a generic alias such as `tuple[int, ...]`."""

_VALUES: Final = (str, int, float, bool, Enum, NoneType, EllipsisType)


class Kind(StrEnum):
    """The kind of value that a field of a node holds."""

    NODE = "node"
    MAYBE = "maybe"
    """A sub-node, or None."""
    NODES = "nodes"
    """A tuple of sub-nodes."""
    VALUE = "value"
    """A leaf that is compared by value and class."""
    IDENTITY = "identity"
    """A leaf that is equal only to itself, as a member of an enumeration is: a key need not tell its class."""


@dataclass(frozen=True)
class Field:
    """A field of a node class: its resolved annotation, its kind, and whether it holds bodies (see `Node.is_body`)."""

    hint: Hint
    kind: Kind
    is_body: bool


def fields_of(cls: type, base: type) -> dict[str, Field]:
    """Returns the fields that *cls*, whose nodes are those of class *base*, declares itself.

    Raises `TypeError` for an annotation that names an unknown class, or whose kind can't be told.
    """
    try:
        hints = get_annotations(cls, locals={cls.__name__: cls}, eval_str=True)
    except NameError as e:
        raise TypeError(
            f"a field of the node class {cls.__name__} names {e.name}, which is not defined where the class is made: "
            "import it there, not under TYPE_CHECKING"
        ) from e
    return {name: _field(f"{cls.__name__}.{name}", hint, base) for name, hint in hints.items()}


def _field(name: str, hint: Hint, base: type) -> Field:
    held, kind = _node_class(hint, base)
    if held is not None:
        return Field(hint, kind, bool(getattr(held, "is_body", False)))
    if _leaf(hint) == "identity" or (isinstance(hint, type) and issubclass(hint, Enum)):
        return Field(hint, Kind.IDENTITY, is_body=False)
    if _is_value(hint):
        return Field(hint, Kind.VALUE, is_body=False)
    raise TypeError(
        f"the field {name}: {hint} is neither a node, `node | None`, `tuple[node, ...]` nor a leaf: plain values, tuples of "
        'them, and classes with `__leaf__ = "identity"` or `"value"` are leaves'
    )


def _node_class(hint: Hint, base: type) -> tuple[type | None, Kind]:
    """Returns the class of the nodes that a field holds, if it holds any, and how."""
    if _is_node(hint, base):
        return hint, Kind.NODE
    origin, args = _parts(hint)
    if origin in (Union, UnionType) and len(args) == 2 and NoneType in args:
        inner = next(a for a in args if a is not NoneType)
        return (inner if _is_node(inner, base) else None), Kind.MAYBE
    if origin is tuple and len(args) == 2 and args[1] is ...:
        return (args[0] if _is_node(args[0], base) else None), Kind.NODES
    return None, Kind.VALUE


def _is_node(hint: Hint, base: type) -> bool:
    """Answers whether *hint* is a class of nodes that are not leaves, as variables are."""
    return isinstance(hint, type) and issubclass(hint, base) and _leaf(hint) is None


def _leaf(hint: Hint) -> str | None:
    """Returns how a class declares its objects to be compared as leaves."""
    found: str | None = getattr(hint, "__leaf__", None) if isinstance(hint, type) else None
    return found


def _is_value(hint: Hint) -> bool:
    """Answers whether all values that *hint* allows are leaves."""
    origin, args = _parts(hint)
    if origin in (Union, UnionType, tuple):
        return all(map(_is_value, args))
    return hint is ... or (isinstance(hint, type) and (issubclass(hint, _VALUES) or _leaf(hint) is not None))


def _parts(hint: Hint) -> tuple[Any, tuple[Any, ...]]:
    """Returns the generic class or form of *hint*, and its arguments."""
    return get_origin(hint), get_args(hint)
