"""Operators of classical machine learning, of the domain `ai.onnx.ml`: those of numbers."""

from typing import Final

DOMAIN: Final = "ai.onnx.ml"
