"""Translations of ONNX operators, one file a family: they read a node's attributes and add Weft's operators and composites."""
