"""The callees that are known without a declaration: what they do to the machine, and that they compute nothing."""

from __future__ import annotations

from typing import Final

PREFETCH: Final = "weft.prefetch"
"""Called with the address of an element that will be read soon, which may lie outside of its buffer."""

BARRIER: Final = "weft.barrier"
"""Called by all threads of a block: none goes on before all are there, and each then sees what the others wrote."""

WARP_BARRIER: Final = "weft.barrier.warp"
"""The same for the threads of a warp."""
