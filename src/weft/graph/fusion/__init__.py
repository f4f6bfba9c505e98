"""Fusion: which nodes share a kernel, from classes derived from their formulas."""
