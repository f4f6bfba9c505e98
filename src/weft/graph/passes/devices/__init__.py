"""Passes for models whose kernels a device runs: what a kernel can take, and what the host's processor computes instead."""
