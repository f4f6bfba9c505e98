"""Factorisations of matrices, and solvers by them: dense, one matrix after another of a batch [..., m, n]."""
