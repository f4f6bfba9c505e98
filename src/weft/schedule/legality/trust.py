"""Trust: where results are compared afterwards, the proofs that loops are independent, and run an instance once, are left out.

with trusting():
    s.vectorize(loop)      # no proof
    with proving():
        s.parallel(loop)   # proved: a rule asks by trying, and goes on otherwise if it is refused
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_TRUSTED: Final = ContextVar("trusted", default=False)


def is_trusted() -> bool:
    """Tells whether proofs that only refuse are to be left out here."""
    return _TRUSTED.get()


@contextmanager
def trusting() -> Iterator[None]:
    """Leaves out proofs that only refuse: the program of a legal schedule is the same, that of an illegal one is wrong."""
    with _set(value=True):
        yield


@contextmanager
def proving() -> Iterator[None]:
    """Proves all, whether trusted or not: for steps that may be refused."""
    with _set(value=False):
        yield


@contextmanager
def _set(*, value: bool) -> Iterator[None]:
    token = _TRUSTED.set(value)
    try:
        yield
    finally:
        _TRUSTED.reset(token)
