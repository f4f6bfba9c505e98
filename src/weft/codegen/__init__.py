"""Code generators, one folder per backend, and what they share.

`backend` says what a backend is and `backends` names them; `toolchain` goes from a program to code by that of its target. `abi`
and `entry_spec` are the interface between generated code and the runtime; `objects` reads, links and writes object files.
"""

from weft.codegen.backend import Backend, Code, Image, Module, Source, SourceCode
from weft.codegen.backends import backend_facts
from weft.codegen.toolchain import backend_of, compile_program, link, link_here

__all__ = [
    "Backend", "Code", "Image", "Module", "Source", "SourceCode", "backend_facts", "backend_of", "compile_program", "link",
    "link_here",
]
