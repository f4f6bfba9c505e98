"""Rewritings of programs that several primitives share."""
