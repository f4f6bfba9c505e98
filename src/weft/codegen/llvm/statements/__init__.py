"""Statements, calls and entry points as LLVM IR."""
