"""Operators that find how many elements there are of a kind: sizes that only a run tells."""
