"""Addresses, loads and stores as LLVM IR."""
