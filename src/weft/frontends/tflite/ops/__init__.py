"""Translations of TensorFlow Lite's operators, most of which are TensorFlow's by other names."""
