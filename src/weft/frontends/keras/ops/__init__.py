"""Translations of Keras's layers, one file a family: they read a call's settings and weights and add Weft's operators."""
