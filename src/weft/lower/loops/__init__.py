"""Passes over loops: partitioning, unswitching, vectorization, unrolling, prefetching, tasks."""
