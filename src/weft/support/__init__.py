"""Utilities for every layer: errors, data types, knobs."""
