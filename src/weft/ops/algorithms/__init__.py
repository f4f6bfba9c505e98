"""Operators that are algorithms and no index formulas: sorting, selection, prefixes, updates in order."""
