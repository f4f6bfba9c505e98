"""Tensor expressions, and their lowering to loops."""
