"""Readers of model formats, one folder per source."""
