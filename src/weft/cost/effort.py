"""Limits of the compiler's own work and memory: of its searches, tables, unrolling and constant folding.

None of them is a fact of a machine that runs a model; a larger one costs time or memory while compiling, and no result changes
but by how good it is.
"""

from __future__ import annotations

from typing import Final

ORDER_BEAMS: Final = (32, 4, 1)
"""The widths of the beam search over orders of groups: the widest that stays within `ORDER_STEPS` counts."""

ORDER_STEPS: Final = 12_000
"""The extensions of a partial order that one width of the beam may try."""

PLACEMENT_IMPROVEMENTS: Final = 8
"""How often best fit moves the buffers that end highest to the front, before the next order is tried."""

PLACEMENT_EXCHANGES: Final = 60
"""The exchanges of two buffers that are tried on the best placement."""

PLACEMENT_PAIRS: Final = 1_000_000
"""Pairs of buffers that placing them may compare."""

LEAST_FOLDED_BYTES: Final = 1 << 28
"""Bytes that constant folding may make of any model."""

FOLDED_TIMES_CONSTANTS: Final = 16
"""The same, as a multiple of the model's own constants: weights are converted, transposed, scaled, and packed."""

LARGEST_FOLDED_GROWTH: Final = 1 << 20
"""Bytes by which the result of a folded call may exceed its operands: an expanded scalar is better left to the kernel."""

SMALLEST_DEFERRED: Final = 1 << 8
"""Bytes from which on a folded result is computed when it is first needed, so that no one waits for its code."""

LARGEST_COMPARED_CONSTANT: Final = 4096
"""Bytes up to which constants are compared by contents; larger ones are equal only if they are one array."""

SCALED_PIECE: Final = 1 << 14
"""Elements of a weight that are scaled at once while folding: the temporaries stay in cache."""

PACKED_AT_ONCE: Final = 1 << 25
"""Bytes of packed weights after which the pages of the model's files that were read for them are let go of."""

LEAST_STREAMED: Final = 1 << 28
"""Bytes of constants from which on they are computed straight to the file that a model is written to, once its kernels are made.

Fewer are computed in memory, while the kernels are made.
"""

SAVED_CONSTANTS: Final = 1 << 28
"""Bytes of constants whose elements a saved graph holds; later ones are described by shape and type."""

RANGE_DEPTH: Final = 32
"""Nodes that are looked through, one after another, for the range of a value."""

MOST_SEQUENCE_STEPS: Final = 1024
"""Elements up to which a sequence of tensors is taken apart, and a loop over such unrolled, into nodes."""

MOST_SIZES_OF_ELEMENTS: Final = 8
"""Sizes that there is room for with each tensor of a sequence whose number of dimensions only a run tells."""

MOST_UNROLLED_STEPS: Final = 16
"""Iterations up to which a loop is unrolled into nodes: others are compiled once, and run as often as they need."""

LARGEST_SAMPLED_DIMENSION: Final = 1 << 22
"""Elements of a dimension up to which an importer tabulates where each of them is sampled."""

CONDITION_ROUNDS: Final = 3
"""How often each condition of a block may tighten the ranges of its loops: a tighter range may let another condition cut more."""

LARGEST_CONDITION_TABLE: Final = 1 << 14
"""Points at which a condition is evaluated to find the padded part of an image; in larger images the border is small."""

WHOLE_STEPS: Final = 1e-5
"""The part of a step, or of the number of steps, by which a bias may miss a whole number of them and be taken for it: the
rounding errors of the scale, a product of two."""

NESTED_CALLS: Final = 50
"""Calls of a model's functions within one another, each of which takes several of Python's; tail calls do not count."""

INLINED_CALLS: Final = 20_000
"""Calls of a model's functions that are inlined in all."""
