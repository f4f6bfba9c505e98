"""Translations of the layers of Core ML's neural networks, a file for each family."""
