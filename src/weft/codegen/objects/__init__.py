"""Object files, whatever backend made them: ELF's records, reading, writing, and linking to one image.

`relocations_x86_64`, and one file like it for each further machine, fill in the addresses that instructions hold.
"""
