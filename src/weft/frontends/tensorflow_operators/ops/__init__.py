"""Translations of TensorFlow's operators, one file a family; TensorFlow Lite's are translated by them too."""
