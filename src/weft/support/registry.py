"""Tables that come with Weft and may be added to: which entries are its own is known, for results that are kept.

OPERATORS: Final = Registry[str, Operator]("operators")
...                  # Weft's own
OPERATORS.seal()
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Registry(dict[K, V]):
    """A table by name. Entries that are added after `seal`, or replaced, come from outside of Weft."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self.title = title
        self._own: dict[K, V] = {}
        _REGISTRIES.append(self)

    def seal(self) -> None:
        """Declares all entries that are there now to be Weft's own."""
        self._own = dict(self)

    def is_foreign(self, key: K) -> bool:
        """Tells whether the entry *key* comes from outside."""
        return key in self and self._own.get(key) is not self[key]

    def added(self) -> list[K]:
        """Returns the names from outside that Weft itself does not have."""
        return [key for key in self if key not in self._own]

    def is_altered(self) -> bool:
        """Tells whether an entry of Weft's own was replaced or removed."""
        return any(self.get(key) is not value for key, value in self._own.items())


_REGISTRIES: Final[list[Registry[Any, Any]]] = []


def added_names() -> tuple[str, ...] | None:
    """Returns the names of all entries from outside; None if one of Weft's own entries was replaced or removed.

    Modules not imported yet hold none of either.
    """
    if any(r.is_altered() for r in _REGISTRIES):
        return None
    return tuple(sorted(f"{r.title} {key}" for r in _REGISTRIES for key in r.added()))
