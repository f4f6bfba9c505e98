"""Quantised tensors: scales and zero points, arithmetic on them, integers of few bits in bytes."""
