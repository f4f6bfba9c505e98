"""Translations of layers that PyTorch has an operator for."""
