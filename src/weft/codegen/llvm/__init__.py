"""Machine code by way of LLVM: flat loop programs to IR text, to objects in memory, to one position-independent image.

`module` writes the text, `compile` has LLVM make an object of it, `link` joins objects. `emitter` holds the state of one
function and `builder` places its instructions; expressions are emitted by `operators`, `casts`, `division`, `guards`,
`functions` and `loads`, statements by `statements`, `stores`, `calls` and `exits`. `abi` and `entry` are the outside's view.
"""
