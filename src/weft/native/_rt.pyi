"""The native runtime: thread pool, arenas, loader."""

from typing import Final

ABI: Final[int]
