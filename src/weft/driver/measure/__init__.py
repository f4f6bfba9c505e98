"""Measurements: the machine's peak rates, the times of a model's kernels, and how far these are from the roofline."""
