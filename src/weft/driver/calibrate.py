"""The facts of a processor that is in no table of `targets.cores`: measured once, and kept in the cache.

know_host(progress, cache)     before `host()`: measures this processor if no table has it and it was not measured before
calibrate(progress, cache)     measures it in any case, as `weft doctor --calibrate` does
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, fields
from functools import partial
from typing import Final

from weft.driver.cache.code_cache import Cache
from weft.driver.progress import Progress
from weft.support.digest import digest
from weft.support.lazy_import import resolve
from weft.targets import (
    MEASURED,
    KnownCore,
    Target,
    can_run,
    cpuinfo,
    listed_core,
    machine_name,
    parse_target,
    processor_key,
    use_measured,
)

MEASURE: Final = "weft.driver.measure.measure_core:measure_core"
"""Imports the code generator, so that it is imported when something is to be measured."""

STAGE: Final = "calibrate"
"""The stage that progress callbacks are given while a processor is measured."""

VERSION: Final = 5
"""Counts up when facts are measured in another way: those that are kept are measured again."""

KIND: Final = "core"
"""The kind of cache entries that store measured facts."""

_lock = threading.Lock()


def target_here(text: str, progress: Progress | None = None, cache: Cache | None = None) -> Target:
    """Returns the target that *text* describes, as `parse_target` does, once the facts of this machine that it has are known.

    Nothing is measured for a target that is another machine.
    """
    target = parse_target(text)
    machines = [t.isa.machine for t in (target, target.processor) if t is not None]
    if machine_name() not in machines or not can_run(target):
        return target
    know_host(progress, cache)
    return parse_target(text)


def know_host(progress: Progress | None = None, cache: Cache | None = None) -> None:
    """Lets the targets of this machine know its processor: measures it if it is in no table and was not measured before.

    Measured facts are looked up and kept in *cache*, shared by processes; without one, they are kept in this process alone.
    """
    told = cpuinfo()
    if machine_name() != "x86_64" or listed_core(told) is not None:
        return
    with _lock:
        if processor_key(told) not in MEASURED:
            use_measured(_measured_once(progress, cache))


def calibrate(progress: Progress | None = None, cache: Cache | None = None) -> KnownCore:
    """Returns the facts of this processor, measured now; *cache* keeps them, and knows those that were measured before."""
    core = _measure(_stored(cache), progress)
    keep_measured(core, cache)
    if listed_core(cpuinfo()) is None:
        use_measured(core)
    return core


def _measured_once(progress: Progress | None, cache: Cache | None) -> KnownCore:
    found = _stored(cache)
    if found is not None or cache is None:
        return found or _measure(None, progress)
    waiting = partial(progress, "wait", 0, 1) if progress is not None else None
    with cache.claim(KIND, _key(), waiting):
        found = _stored(cache)  # somebody may have measured them between the look and the claim
        if found is None:
            found = _measure(None, progress)
            keep_measured(found, cache)
    return found


def _measure(before: KnownCore | None, progress: Progress | None) -> KnownCore:
    core: KnownCore = resolve(MEASURE)(before, partial(progress, STAGE) if progress is not None else None)
    return core


def _key() -> str:
    return digest(VERSION, processor_key(cpuinfo()))


def keep_measured(core: KnownCore, cache: Cache | None) -> None:
    """Stores *core* in *cache* as the measured facts of this processor."""
    if cache is not None:
        cache.put(KIND, _key(), json.dumps(asdict(core)).encode())


def _stored(cache: Cache | None) -> KnownCore | None:
    """Returns the facts that *cache* stores for this processor; None if it has none, or they do not form a valid `KnownCore`."""
    kept = None if cache is None else cache.get(KIND, _key())
    if kept is None:
        return None
    with suppress(ValueError):
        facts = json.loads(kept)
        if isinstance(facts, dict) and _is_a_row(facts):
            return KnownCore(**facts)
    return None


def _is_a_row(facts: Mapping[str, object]) -> bool:
    """Tells whether *facts* are those of a `KnownCore`: text, and positive numbers, whole ones where such are wanted."""
    kinds = {f.name: f.type for f in fields(KnownCore)}
    return set(facts) == set(kinds) and all(_fits(facts[name], str(kind)) for name, kind in kinds.items())


def _fits(fact: object, kind: str) -> bool:
    if kind == "str":
        return isinstance(fact, str)
    if isinstance(fact, bool) or not isinstance(fact, int | float):
        return False
    return fact > 0 and math.isfinite(fact) and (kind == "float" or isinstance(fact, int))
