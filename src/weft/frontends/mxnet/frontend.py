"""MXNet as a frontend."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from weft.frontends.frontend import Frontend
from weft.frontends.mxnet.claims import PARAMS
from weft.frontends.mxnet.importer import from_mxnet
from weft.frontends.two_files import TwoFilesFrontend
from weft.support.errors import MissingFile

SYMBOL: Final = "-symbol.json"


def params_beside(symbol: Path) -> Path:
    """Returns the weights `net-0000.params` of `net-symbol.json`; raises `MissingFile` unless there is just one such file."""
    stem = symbol.name.removesuffix(SYMBOL) if symbol.name.endswith(SYMBOL) else symbol.stem
    found = sorted(p for p in symbol.parent.glob("*.params") if p.stem == stem or p.stem.rpartition("-")[0] == stem)
    if len(found) == 1:
        return found[0]
    among = "several: " + ", ".join(p.name for p in found[:3]) if found else "none"
    raise MissingFile(
        f"of files {stem}-0000.params beside {symbol}, for its weights, there are {among}",
        hint=f'give both: weft.compile(("{symbol.name}", "FILE.params"))',
    )


def _is_weights(head: bytes) -> bool:
    return head.startswith(PARAMS)


FRONTEND: Final[Frontend] = TwoFilesFrontend("an MXNet network", "symbol.json", _is_weights, params_beside, from_mxnet)
