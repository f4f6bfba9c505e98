"""Passes for data that is streamed from memory: streams side by side, and software prefetches."""
