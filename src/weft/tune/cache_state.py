"""Where a kernel finds its data when its model runs: weights were used a whole run ago, activations just now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Final

from weft.driver.build import Compilation
from weft.graph import Constant, Group
from weft.targets import Caches
from weft.tune.measure import Limits


@dataclass(frozen=True)
class CacheState:
    """The preparation before each timed call that leaves a kernel's data in the same cache levels as its model does.

    *evict* bytes are read, none where all that the model touches stays in a core's own caches. *weights* are the numbers of the
    parameters that come from wherever that leaves them; the kernels before have just used the memory of all others.
    """

    evict: int = 0
    weights: tuple[int, ...] = ()

    def within(self, limits: Limits) -> Limits:
        """Returns *limits* with this state, where they leave it open."""
        if limits.evict is not None:
            return limits
        return replace(limits, evict=self.evict, weights=self.weights)


WARM: Final = CacheState()
"""All that a kernel reads is in a core's own caches, as far as it fits."""


def evicted_bytes(working_set: int, caches: Caches) -> int:
    """Returns how many bytes to read so that weights lie where a model that touches *working_set* bytes in a run leaves them.

    They stay in the second-level cache where it holds the model. Twice its bytes push all else out of it, into the third level
    where that holds the model, else out of the third level, too.
    """
    if working_set <= caches.l2:
        return 0
    return min(working_set, 2 * caches.l2 if working_set <= caches.l3 else caches.l3 + caches.l3 // 2)


def working_set(made: Compilation) -> int:
    """Returns the bytes that a run of a compiled model touches at most: weights, the arena, inputs and outputs."""
    specs = (*made.package.inputs, *made.package.outputs)
    outside = sum(s.dtype.bytes * prod([n for n in s.shape if isinstance(n, int)]) for s in specs)
    return sum(c.nbytes for c in made.fused.constants) + (made.package.arena or 0) + outside


def cache_states(made: Compilation) -> Mapping[str, CacheState]:
    """Returns the state of the caches for each kernel of a compiled model, by its key."""
    evict = evicted_bytes(working_set(made), made.target.caches)
    return {g.key: CacheState(evict, _weights(made, g) if evict else ()) for g in reversed(made.fused.kernel_groups)}


def _weights(made: Compilation, group: Group) -> tuple[int, ...]:
    return tuple([n for n, v in enumerate(group.inputs) if isinstance(made.fused.root(v), Constant)])
