"""Up to which length a Fourier transform is one product of matrices."""

from __future__ import annotations

from typing import Final

SHORT_TRANSFORM: Final = 128
"""Lengths up to which a transform is one product: two tables of 128 * 128 float32 are 128 KiB, and fit a second-level cache."""

LONGEST_PRIME: Final = 1024
"""The longest transform without a divisor that is one product: its tables take 8 MiB of float32."""
