"""Caffe as a frontend."""

from __future__ import annotations

from functools import partial
from typing import Final

from weft.frontends.caffe.claims import is_weights
from weft.frontends.caffe.importer import from_caffe
from weft.frontends.frontend import Frontend
from weft.frontends.two_files import TwoFilesFrontend
from weft.frontends.weights_beside import weights_beside

FRONTEND: Final[Frontend] = TwoFilesFrontend(
    "a Caffe network", ".prototxt", is_weights, partial(weights_beside, suffix=".caffemodel"), from_caffe
)
