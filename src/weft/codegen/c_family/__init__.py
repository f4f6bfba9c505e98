"""Emission of flat loop programs as functions of a language of C's family: C, OpenCL C, CUDA C++, Metal, WGSL.

`writer` holds the state of one function, `scalars` and `expressions` write expressions, `accesses` loads and stores, `statements`
the statements that are the same in all, `thread_statements` those that deal with threads; `kernel_facts` writes the kernels of
a program, `helpers` has the small functions that generated code calls. A `Dialect` says how one language differs: its pointers,
its square roots, and the statements that it writes itself.
"""
