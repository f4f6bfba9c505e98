"""MXNet as a frontend."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from weft.frontends.content import existing, head_of
from weft.frontends.frontend import Frontend, Shapes
from weft.frontends.mxnet.claims import PARAMS
from weft.frontends.mxnet.importer import from_mxnet
from weft.graph import Graph
from weft.support.errors import MissingFile, ModelError

SYMBOL: Final = "-symbol.json"


class MXNetFrontend:
    """Networks of two files: the path of the symbol, or a pair of paths."""

    def files(self, path: Path) -> list[Path]:
        """Returns the symbol and the weights beside it."""
        return [path, params_beside(path)]

    def to_graph(self, model: Any, shapes: Shapes | None = None) -> Graph:
        """Imports a network; raises `ModelError` for one of its files alone, if the other isn't beside it."""
        if isinstance(model, bytes):
            raise ModelError(
                "an MXNet network is two files, of which bytes are one",
                hint="give the path of its symbol.json, or a pair of paths",
            )
        pair = model if isinstance(model, tuple) else (model,)
        symbol = existing(pair[0])
        if head_of(symbol).startswith(PARAMS):
            raise ModelError(
                f"{symbol} has a network's weights alone", hint="give its symbol.json, and these beside it"
            )
        return from_mxnet(symbol, existing(pair[1]) if len(pair) > 1 else params_beside(symbol), shapes)


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


FRONTEND: Final[Frontend] = MXNetFrontend()
