"""Passes for models whose kernels a device runs: operators that it lacks, and those that the host's processor computes."""
