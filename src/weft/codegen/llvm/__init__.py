"""Machine code by way of LLVM: flat loop programs to IR text, and to objects in memory.

`ir_module` writes the text and `object_code` has LLVM make an object of it; `backend` is both, and linking. `core` holds the
state of one function; `expressions`, `memory` and `statements` emit these, a file for each kind.
"""
