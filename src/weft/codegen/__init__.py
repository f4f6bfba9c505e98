"""Code generators, one folder per backend, and the parts that they share.

`backend` has the protocol of backends and `backends` their names; `toolchain` compiles a program by its target's backend. `abi`
and `entry_spec` are the interface between generated code and the runtime; `objects` reads, links and writes object files.
"""

from weft.codegen.backend import Backend, Code, Image, Module, Source, SourceCode
from weft.codegen.backends import backend_facts
from weft.codegen.toolchain import backend_of, compile_program, link, link_here

__all__ = [
    "Backend", "Code", "Image", "Module", "Source", "SourceCode", "backend_facts", "backend_of", "compile_program", "link",
    "link_here",
]
