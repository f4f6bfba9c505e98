"""The state of an LLVM function while it is emitted, and how its types and indices are represented."""
