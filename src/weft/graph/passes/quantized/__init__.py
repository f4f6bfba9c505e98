"""Passes over quantised tensors: integers that stand for `(q - zero) * scale`."""
