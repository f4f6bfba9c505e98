"""Writes host programs as bytes, which `native/launch` replays, and lists such bytes for people to read.

`instruction_set` has the instructions, `value_code` writes values, `host_code` statements, `launch_bytes` all of a program, and
`listing` reads them.
"""

from weft.codegen.launch.launch_bytes import LaunchCode, write_launch
from weft.codegen.launch.listing import list_launch

__all__ = ["LaunchCode", "list_launch", "write_launch"]
