"""Cursors: references to loops and blocks, finding and replacing them, and the table of primitives."""
