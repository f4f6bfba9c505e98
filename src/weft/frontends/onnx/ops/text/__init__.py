"""Operators on tensors of strings, whose elements are ids (`string_pool`)."""
