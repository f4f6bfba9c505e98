"""Simplification of whole programs, and dead-code elimination."""
