"""The tuning records that a compilation follows: their keys, the best of them, and their plans."""
