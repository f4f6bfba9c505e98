"""Immutable, interned nodes: the shape of every expression and statement in Weft.

`@node` turns an annotated class into an interned one. Building the same node twice gives the same
object, so equality is identity, a node is a cheap dict key, and "unchanged" is `is`. The technique is
hash-consing (Filliatre and Conchon, "Type-safe modular hash-consing", 2006).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from functools import lru_cache
from types import CodeType
from typing import Any, ClassVar, Final, TypeVar, dataclass_transform

from weft.ir.expr.fields import Field, Kind, fields_of

_INTERNED: dict[tuple[Any, ...], _Entry] = {}


READS: Final = 1
"""The trait of nodes whose value is read from memory."""
ADDRESSES: Final = 2
"""The trait of addresses of memory."""
SELECTS: Final = 4
"""The trait of choices by a condition."""
DIVIDES: Final = 8
"""The trait of divisions of integers, and of their remainders."""
APPLIES: Final = 16
"""The trait of applied functions."""
BRANCHES: Final = 32
"""The trait of conditional statements."""


class _Entry(weakref.ref["Node"]):
    """A weak reference to an interned node that knows the node's key."""

    __slots__ = ("key",)
    key: tuple[Any, ...] | None
    """None for a node that another thread was faster to make: it is not in the table."""


def _forget(dead: _Entry, forget: Callable[..., object] = _INTERNED.pop) -> None:
    """Drops the entry of a node that has died.

    Threads may build nodes side by side. An entry is only ever added by `setdefault`, which is atomic, and only ever removed by
    its own call of this function, so that a key has one node at a time; a thread that finds a dead entry waits for this call.
    (*forget* is bound here because module globals are gone when the last nodes die, at exit.)
    """
    forget(dead.key, None)


class Node:
    """An immutable node of a program: `children()` are its sub-nodes, `rebuild()` makes it with others.

    The slots `variables`, `polynomial` and `canonical` cache the results of `rewrite.free_vars` and `polynomial.poly_of`, and the
    simplifier's form of a sum whose atoms stay as they are (None for the node itself); `traits` are those of all nodes in it,
    itself included.
    """

    __slots__ = ("__weakref__", "canonical", "polynomial", "traits", "variables")
    __match_args__: tuple[str, ...] = ()
    traits: int
    node_fields: ClassVar[dict[str, Field]] = {}
    """The fields of a class made by `node`, by name."""
    is_body: ClassVar[bool] = False
    """Whether nodes of this class are listed by their parent's `bodies()`, as statements are."""
    trait: ClassVar[int] = 0
    """The trait by which searches find nodes of this class, one of those above, or none (0)."""

    def children(self) -> tuple[Node, ...]:
        """Returns the sub-nodes, in field order."""
        raise NotImplementedError

    def rebuild(self, kids: Iterable[Node]) -> Node:
        """Returns this node with its sub-nodes replaced by *kids*, one for one."""
        raise NotImplementedError

    def bodies(self) -> tuple[Node, ...]:
        """Returns those sub-nodes that are statements, in field order."""
        raise NotImplementedError

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; build a new node instead")


C = TypeVar("C", bound=type[Node])


@dataclass_transform(frozen_default=True, eq_default=False)
def node(cls: C) -> C:
    """Generates the slots, interning constructor, `children()`, `bodies()` and `rebuild()` of *cls*, once, at import.

    A field annotated with a class of nodes, or with `Expr | None`, is a sub-node; `tuple[Expr, ...]` and the like are several;
    leaves are compared by value (floats by their bits), or by identity, as their class says: see `fields`, which raises
    `TypeError` for a field that is none of these. A class with a method `derive(self)` returns the values of the slots that it
    names in `__derived__`, computed once from the fields. A method `check(self)` states the node's invariant and raises when it
    is broken.
    """
    declared = fields_of(cls, Node)
    fields = tuple(declared)
    derived: tuple[str, ...] = cls.__dict__.get("__derived__", ())
    body = {k: v for k, v in vars(cls).items() if k not in ("__dict__", "__weakref__")}
    made: Any = type(cls)
    generated = {"__slots__": fields + derived, "__match_args__": fields, "node_fields": declared}
    new_cls = made(cls.__name__, cls.__bases__, {**body, **generated})
    draft = made(cls.__name__, cls.__bases__, {"__slots__": fields + derived, "__setattr__": object.__setattr__})
    scope: dict[str, Any] = {"table": _INTERNED, "entry": _Entry, "forget": _forget, "draft": draft}
    scope.update({f"set_{n}": getattr(new_cls, n).__set__ for n in derived})
    exec(_code(_source(declared, derived, checked=hasattr(cls, "check"))), scope)
    for name in ("__new__", "children", "bodies", "rebuild", "__reduce__"):
        setattr(new_cls, name, scope[name])
    result: C = new_cls
    return result


@lru_cache
def _code(source: str) -> CodeType:
    """Returns the code of *source*, which all operators of two operands have in common."""
    return compile(source, "<node>", "exec")


_CHILD: Final = {
    Kind.NODE: "self.{n}, ",
    Kind.NODES: "*self.{n}, ",
    Kind.MAYBE: "*(() if self.{n} is None else (self.{n},)), ",
}
_TRAITS: Final = {
    Kind.NODE: [" traits |= {n}.traits"],
    Kind.NODES: [" for kid in {n}: traits |= kid.traits"],
    Kind.MAYBE: [" if {n} is not None: traits |= {n}.traits"],
}
_REBUILT: Final = {
    Kind.NODE: "next(it)",
    Kind.NODES: "tuple([next(it) for _ in self.{n}])",
    Kind.MAYBE: "(None if self.{n} is None else next(it))",
}
_VALUE_KEY: Final = "{n}.__class__, {n}.hex() if {n}.__class__ is float else {n}, "
"""1, 1.0 and True hash alike, so a leaf is keyed with its class, and a float by its bits (0.0 == -0.0, nan != nan)."""


def _source(fields: dict[str, Field], derived: tuple[str, ...], *, checked: bool) -> str:
    """Writes the constructor and the walkers of a node class as Python source: they are the hottest code there is.

    A node is made as one of a class without the check that nothing is assigned to: that takes a third of the time which setting
    each slot by its descriptor does.
    """
    key = "".join([(_VALUE_KEY if f.kind is Kind.VALUE else "{n}, ").format(n=n) for n, f in fields.items()])
    children = [(_CHILD.get(f.kind, "").format(n=n), f.is_body) for n, f in fields.items()]
    rebuilt = [_REBUILT.get(f.kind, "self.{n}").format(n=n) for n, f in fields.items()]
    lines = [
        f"def __new__(cls, {', '.join(fields)}):",
        f" key = (cls, {key})",
        " ref = table.get(key)",
        " if ref is not None and (self := ref()) is not None: return self",
        " self = draft()",
        *(f" self.{n} = {n}" for n in fields),
        " traits = cls.trait",
        *(line.format(n=n) for n, f in fields.items() for line in _TRAITS.get(f.kind, ())),
        " self.traits = traits",
        " self.__class__ = cls",
        *([" self.check()"] if checked else []),
        *([f" {''.join(f'd_{n}, ' for n in derived)} = self.derive()"] if derived else []),
        *(f" set_{n}(self, d_{n})" for n in derived),
        " made = entry(self, forget)",
        " made.key = key",
        " while (other := table.setdefault(key, made)) is not made:",
        "  if (kept := other()) is not None:",
        "   made.key = None",
        "   return kept",
        " return self",
        f"def children(self): return ({''.join([text for text, _ in children])})",
        f"def bodies(self): return ({''.join([text for text, is_body in children if is_body])})",
        "def rebuild(self, kids):",
        " it = iter(kids)",
        f" return type(self)({', '.join(rebuilt)})",
        f"def __reduce__(self): return type(self), ({''.join(f'self.{n}, ' for n in fields)})",
    ]
    return "\n".join(lines) + "\n"
