"""Scalar expressions: interned nodes, one rewriter, the simplifier and bounds."""
