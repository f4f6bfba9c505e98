"""The two ways in which tests compute a network: compiled, and by the reference interpreter."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def ways(networks: Iterable[str], compiled: Iterable[str]) -> list[Any]:
    """Returns each of *networks* in both ways, for `parametrize`.

    Those in *compiled* are compiled in the quick tests, and interpreted in the slow ones; others the other way round.
    """
    quick = set(compiled)
    return [
        pytest.param(name, how, marks=() if (how == "compiled") == (name in quick) else pytest.mark.slow)
        for name in networks
        for how in ("compiled", "interpreted")
    ]
