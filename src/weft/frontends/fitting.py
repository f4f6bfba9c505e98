"""Nodes of a model whose parts do not fit the operator that they are given to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from weft.support.errors import ModelError, WeftError


@contextmanager
def fitting(source: str, parts: str, again: str) -> Iterator[None]:
    """Turns a translation's errors about *parts* that do not fit together into a `ModelError` at *source* with the hint *again*.

    Errors of Weft's own pass as they are.
    """
    try:
        yield
    except WeftError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ModelError(
            f"its {parts} do not fit together ({type(error).__name__}: {error})", where=source, hint=again
        ) from error
