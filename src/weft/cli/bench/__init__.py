"""`weft bench`: engines side by side, ablations, and the machine's own limits."""
