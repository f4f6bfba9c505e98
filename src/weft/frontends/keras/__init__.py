"""Keras: models that Keras saved, as `.keras` archives or HDF5 files, read without Keras."""
