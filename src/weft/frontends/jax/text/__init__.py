"""MLIR's text, as far as StableHLO is printed in it: tokens, values of attributes, operations and functions."""
