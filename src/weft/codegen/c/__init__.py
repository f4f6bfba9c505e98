"""C99 source: flat loop programs to one file that any C compiler builds, without a library.

`module_text` writes a program's functions; `writer` holds the state of one, `scalars` and `expressions` write expressions,
`accesses` loads and stores, `statements` the rest, `entry_wrapper` the entry points. `prelude` has the helpers that generated
code calls. `unit` joins programs to one file, and `compiler` has the system's C compiler make an image of it for this machine.
Vectors are written lane by lane, or, where the target has the feature `vector_extensions`, as the vector types of GCC and Clang.
"""
