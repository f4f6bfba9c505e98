"""Primitives that move a block's computation to other loops."""
