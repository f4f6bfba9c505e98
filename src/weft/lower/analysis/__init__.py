"""Analyses that passes share: accesses to buffers, cut points of loops, guards, threads."""
