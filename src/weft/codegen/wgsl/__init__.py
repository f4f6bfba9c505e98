"""WGSL: the kernels of flat loop programs as WebGPU's shading language, which a device's driver compiles.

The state of a kernel while it is written, branches and sequences are those of C's family (`codegen.c_family`); expressions are
written here, since the language converts nothing by itself and has no `?:`. Numbers of 64 bits are two words, those of less than
32 bits are packed in words where others see them; `wgsl_types` has the types, `scalars` and `type_conversions` one operator each,
`expressions` and `packed_accesses` write them, `statements` threads and their memories, `wgsl_helpers` the functions that kernels
call, and `wgsl_kernel` writes a kernel as a whole.
"""
