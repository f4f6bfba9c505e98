"""Tensor instructions: how they are declared, and those of each machine."""
