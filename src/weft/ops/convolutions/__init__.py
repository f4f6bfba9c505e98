"""Convolutions: direct, transposed, and by Winograd's method."""
