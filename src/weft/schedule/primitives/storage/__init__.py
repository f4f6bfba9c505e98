"""Primitives that change where and how buffers are stored."""
