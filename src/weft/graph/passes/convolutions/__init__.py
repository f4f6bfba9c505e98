"""Passes that turn convolutions into others: Winograd, matrix products, phases of strides."""
