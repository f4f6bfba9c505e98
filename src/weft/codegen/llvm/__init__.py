"""Machine code by way of LLVM: flat loop programs to IR text, to objects in memory, to one position-independent image.

`module` writes the text, `compile` has LLVM make an object of it, `link` joins objects. `emitter` holds the state of one function;
`builder` places instructions; what is emitted for expressions is in `operators`, `casts`, `division`, `guards`, `functions` and
`loads`, for statements in `statements`, `stores`, `calls` and `exits`. `abi` and `entry` say what the outside sees.
"""
