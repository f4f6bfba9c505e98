"""Passes for states: their memory is written and read where it is."""
