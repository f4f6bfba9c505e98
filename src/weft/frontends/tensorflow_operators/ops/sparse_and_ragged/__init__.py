"""Tensors of which the elements are apart: sparse ones, and rows of several lengths."""
