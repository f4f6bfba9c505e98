"""Scalar expressions: interned nodes, one rewriter, the simplifier and bounds."""

from weft.ir import printer  # noqa: F401  (gives the nodes their text)
