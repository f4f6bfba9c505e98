"""Primitives that change the loops around a block."""
