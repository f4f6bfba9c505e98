"""Primitives for tensor instructions, virtual threads and pipelines."""
