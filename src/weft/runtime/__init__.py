"""Runs compiled models; importable without the compiler."""

from weft.runtime.model import Model, load
from weft.runtime.package import Package, Replay, TensorSpec

__all__ = ["Model", "Package", "Replay", "TensorSpec", "load"]
