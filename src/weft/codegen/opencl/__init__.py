"""OpenCL C: the kernels of flat loop programs as source text, which the driver of whatever device runs them compiles.

`kernel_text` writes the kernels of a program with the parts that C's family shares (`codegen.c_family`), `statements` has the
language's words for threads and their memories, `opencl_head` the head of a source, and `join_kernels` joins programs to one.
Host functions are not written: they are launches, which the host program of a model replays (docs/design/0041 and 0055).
"""
