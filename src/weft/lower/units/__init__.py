"""Passes for accelerators with several units: virtual threads and dependency tokens."""
