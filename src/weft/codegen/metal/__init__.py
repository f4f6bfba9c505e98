"""Metal Shading Language: the kernels of flat loop programs as source text, which Apple's compiler takes.

`metal_dialect` has the language's words for threads, memories and barriers, and its numbers, `metal_helpers` its own helpers,
`metal_kernel` the definition of a kernel, and `metal_head` the head of a source. Weft has no runtime for it.
"""
