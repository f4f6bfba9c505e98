"""Complex numbers, and transforms of signals."""
