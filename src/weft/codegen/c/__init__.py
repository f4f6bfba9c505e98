"""C99 source: flat loop programs to one file that any C compiler builds, without a library.

`module_text` writes a program's functions with the parts that C's family shares (`codegen.c_family`); `statements` has those that
deal with the runtime's context, `entry_wrapper` the entry points, `prelude` the head of a file. `unit` joins programs to one
file, and `compiler` has the system's C compiler make an image of it for this machine. Vectors are written lane by lane, or, where
the target has the feature `vector_extensions`, as the vector types of GCC and Clang.
"""
