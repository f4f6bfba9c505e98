"""Expressions as LLVM IR, one file a kind."""
