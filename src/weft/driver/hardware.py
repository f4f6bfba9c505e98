"""The fingerprint of a machine: the facts by which tuning records are found again.

Facts that were measured, such as the speeds of caches, or the share of the last one that a program can count on, are no part of
it: they differ a little each time.
"""

from __future__ import annotations

import json

from weft.records import Hardware
from weft.runtime.devices import device_names
from weft.support.digest import digest
from weft.targets import Target, cache_sizes, can_run, cpuinfo, host, machine_name, processor_key, processor_name


def hardware_of(target: Target) -> Hardware:
    """Returns the fingerprint of *target*, and of this machine's processor, or its device, where the target's code is run by it.

    The same processor with other caches, or with other cores to share a loop, is another machine, as is the same one held to
    shorter vectors. The processor's name is there to be read; it does not count.
    """
    isa, caches = target.isa, target.caches
    facts: dict[str, object] = {
        "machine": isa.machine or isa.language,
        "features": list(isa.features),
        "vector_bits": isa.vector_bits,
        "caches": [caches.l1, caches.l2, _third_level(target)],
        "cores": target.cores,
    }
    if isa.machine == machine_name() and can_run(target):
        told = cpuinfo()
        facts |= {"processor": [told.get(k, "") for k in ("vendor_id", "cpu family", "model")]}
        key = digest(json.dumps(facts), processor_key(told))
        facts["name"] = processor_name()
    elif (devices := device_names(isa.language)) and can_run(target):
        facts["device"] = devices[0]
        key = digest(json.dumps(facts))
    else:
        key = digest(json.dumps(facts))
    return Hardware(key, json.dumps(facts))


def _third_level(target: Target) -> int:
    """Returns the bytes of the third-level cache: those that the system tells, where *target* has this machine's.

    Targets have the part of it that was measured as a program's own (`KnownCore.l3_share`).
    """
    is_here = target.isa.machine == machine_name() and target.caches.l3 == host().caches.l3
    return cache_sizes().get(3, target.caches.l3) if is_here else target.caches.l3
