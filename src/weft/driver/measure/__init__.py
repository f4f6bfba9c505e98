"""Speeds: of the machine, of a model's kernels, and how far they are from what the machine allows."""
