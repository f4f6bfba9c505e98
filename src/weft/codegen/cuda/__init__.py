"""CUDA C++: the kernels of flat loop programs, compiled by NVRTC to machine code for one architecture of NVIDIA's GPUs.

`cuda_dialect` has the language's words for threads and its own helpers, `cuda_kernels` the definition of a kernel, `cuda_head`
the head of a source. `nvrtc` compiles a source, which takes no GPU and no driver; `resources` reads the registers and memory that
its log reports.
"""
