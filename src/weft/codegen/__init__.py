"""Code generators, one folder per backend."""
