"""Legality of schedule steps: dependences, bijective iteration maps, coverage of regions, visibility of buffers."""
