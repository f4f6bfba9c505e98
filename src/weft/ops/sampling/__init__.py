"""Operators over windows whose places, or sizes, are data; and the sum of overlapping windows, which undoes them."""
