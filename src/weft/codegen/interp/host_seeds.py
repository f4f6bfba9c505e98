"""The host operator on seeds for interpreted programs: it takes the next seed of the process, as compiled ones do."""

from __future__ import annotations

from weft.codegen.interp.host_strings import Place
from weft.native import _rt


def fresh_seed(to: Place) -> None:
    """Writes the next seed."""
    to[0][to[1]] = _rt.fresh_seed()
