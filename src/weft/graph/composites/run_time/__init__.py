"""Shapes, axes and scales that depend on the values of inputs, which only a run tells."""
