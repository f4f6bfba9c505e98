"""Primitives that change how reductions are computed."""
