"""Tables of translations by the names that a format has for its layers or operators, filled by decorating functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from weft.support.registry import Registry

T = TypeVar("T", bound=Callable[..., object])


def entering(table: Registry[str, T], names: tuple[str, ...], spelled: Callable[[str], str] = str) -> Callable[[T], T]:
    """Returns the decorator that enters a translation in *table* by each of *names*, as they are *spelled* there.

    Raises `ValueError` for a name that has a translation already.
    """

    def enter(translate: T) -> T:
        for name in map(spelled, names):
            if name in table:
                raise ValueError(f"{name} has two translations")
            table[name] = translate
        return translate

    return enter
