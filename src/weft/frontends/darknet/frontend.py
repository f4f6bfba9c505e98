"""Darknet as a frontend."""

from __future__ import annotations

from functools import partial
from typing import Final

from weft.frontends.darknet.claims import WEIGHTS_VERSIONS
from weft.frontends.darknet.importer import from_darknet
from weft.frontends.frontend import Frontend
from weft.frontends.two_files import TwoFilesFrontend
from weft.frontends.weights_beside import weights_beside


def _is_weights(head: bytes) -> bool:
    return head[:8] in WEIGHTS_VERSIONS


FRONTEND: Final[Frontend] = TwoFilesFrontend(
    "a Darknet network", ".cfg", _is_weights, partial(weights_beside, suffix=".weights"), from_darknet
)
