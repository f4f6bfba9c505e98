"""Arguments of public functions: those of a wrong type are refused by name, as values that there are not are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from weft.support.errors import InputError

MOST_THREADS: Final = 1 << 20
"""More threads than any machine has; a number beyond is as good as this one."""

NOT_MANY: Final = (str, bytes, bytearray)
"""Types that are iterable but count as a single value."""


def check_threads(threads: object) -> int | None:
    """Returns a number of threads, or None for all processors; raises `InputError` for anything else."""
    if threads is None:
        return None
    if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
        raise InputError(f"threads is {threads!r}", hint="use 1 or more, or None for all processors")
    return min(threads, MOST_THREADS)


def check_bool(name: str, value: object) -> bool:
    """Returns *value* as a bool; raises `InputError` unless it is one, or 0 or 1, or NumPy's."""
    if isinstance(value, Iterable) or value is None or value not in (False, True):
        raise InputError(f"{name} is {value!r}", hint="use True or False")
    return bool(value)


def check_text(name: str, value: object, hint: str) -> str:
    """Returns *value*; raises `InputError` unless it is a text."""
    if not isinstance(value, str):
        raise InputError(f"{name} is {value!r}", hint=hint)
    return value


def check_many(name: str, value: object, hint: str) -> list[object]:
    """Returns the items of *value*, a list or another iterable; raises `InputError` for anything else."""
    if not isinstance(value, Iterable) or isinstance(value, NOT_MANY):
        raise InputError(f"{name} is {value!r}", hint=hint)
    return list(value)


def check_mapping(name: str, value: object, hint: str) -> Mapping[object, object]:
    """Returns *value*; raises `InputError` unless it is a mapping, such as a dict."""
    if not isinstance(value, Mapping):
        raise InputError(f"{name} is a {type(value).__name__}, which has no names", hint=hint)
    return value
