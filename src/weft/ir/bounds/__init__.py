"""Intervals, polynomials and bounds of variables: the facts that the simplifier reasons from."""
