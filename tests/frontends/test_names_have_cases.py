"""Each name of a format's table is used by a model of the tests (`names_in_cases`), but for those that are listed here."""

from __future__ import annotations

from typing import Final

import pytest
from tests.frontends.names_in_cases import READERS
from tests.frontends.operator_page import FORMATS, Format

WITHOUT: Final[dict[str, str]] = {
    "TensorFlow": "Angle, BatchNormWithGlobalNormalization, BitwiseNot, Conv1D, EmbeddingLookup, EmptyTensorList, "
    "FullyConnected, Gelu, HardSwish, If, L2Normalization, LogicalXor, OptimizationBarrier, PRelu, "
    "Relu0To1, ReluN1To1, RemoteCall, ResourceGather, TensorArraySizeV3, TensorListLength, TopK",
    "Keras": "Convolution1D, Convolution1DTranspose, Convolution2D, Convolution2DTranspose, Convolution3D, "
    "Convolution3DTranspose, SeparableConvolution1D, SeparableConvolution2D, ops.Abs",
}
"""The names of each format's table that no stored model uses yet. Who adds a case takes its name away here."""

SLOW: Final = ("StableHLO (JAX)",)
"""Formats whose cases are functions, which are lowered to be read."""


def test_each_format_is_read() -> None:
    assert {f.title for f in FORMATS} == READERS.keys()


@pytest.mark.parametrize(
    "f", [pytest.param(f, id=f.title, marks=pytest.mark.slow if f.title in SLOW else ()) for f in FORMATS]
)
def test_each_name_has_a_case(f: Format) -> None:
    if f.title in SLOW:
        pytest.importorskip("jax")
    names = {name for found in f.names().values() for name in found}
    assert names - READERS[f.title]() == set(WITHOUT.get(f.title, "").split(", ")) - {""}
