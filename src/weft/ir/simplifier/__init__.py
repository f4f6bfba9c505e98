"""The simplifier: canonical forms of expressions under known bounds."""
