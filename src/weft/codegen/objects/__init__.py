"""Object files, whatever backend made them: ELF's records, reading, writing, and linking to one image.

`relocations_x86_64`, and one file like it for each further machine, fill in the addresses that instructions hold.
"""

from weft.codegen.objects.link import link
from weft.codegen.objects.write_elf import Part, Symbol, write_object

__all__ = ["Part", "Symbol", "link", "write_object"]
