"""Translations of PyTorch operators, one file a family: they read a call's arguments and add Weft's operators and composites."""
