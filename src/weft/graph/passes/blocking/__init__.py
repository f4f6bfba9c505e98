"""Passes that compute an operator, or a chain of them, part by part."""
