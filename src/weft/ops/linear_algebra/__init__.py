"""Factorisations of matrices and what is solved by them: dense, one matrix after another of a batch [..., m, n]."""
