"""Affine analysis: provers of conditions, and the iteration maps of blocks."""
