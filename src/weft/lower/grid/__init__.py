"""Passes for machines that run grids of threads: kernels, barriers, shared memory, cross-thread reductions."""
