"""Darknet's networks: a text of sections (.cfg), and a file of weights in the order of the sections (.weights)."""
