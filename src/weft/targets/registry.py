"""Targets by name, and which of them this machine runs.

host()                                       this machine
parse_target("cpu -mattr=avx2 -cores=4")
parse_target("aarch64")
parse_target("cuda -arch=sm_90")
parse_target("cuda+cpu")                     a device, and the host's processor for what suits it better
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Final

from weft.runtime.devices import APIS, device_names
from weft.support.arguments import check_text
from weft.support.errors import InputError
from weft.targets.cores import MEASURED, KnownCore, processor_key
from weft.targets.cuda_machines import LISTED, cuda
from weft.targets.grid_machines import METAL, WEBGPU
from weft.targets.opencl_machines import opencl
from weft.targets.plain import ARM_FLAGS, BASELINE, PLAIN
from weft.targets.source_targets import C_VECTOR, C
from weft.targets.target import Target
from weft.targets.this_machine import cache_sizes, cpuinfo, host_flags, machine_name, page_size, usable_cores
from weft.targets.x86_cpus import LEVELS, cpu, linux_name

TARGETS: Final = "use cpu, cpu -mattr=avx512|avx2|sse4, or another that `weft targets` lists"

_CORES: Final = re.compile("[1-9][0-9]{0,5}")
"""How many cores a target may be said to have, in ASCII's digits alone."""


@cache
def host() -> Target:
    """Returns this machine as a target: with the widest x86-64 level that it has, or as its architecture's plain preset.

    Raises `InputError` on an architecture without a preset.
    """
    machine = machine_name()
    if machine == "x86_64":
        return cpu()
    if machine not in PLAIN:
        raise InputError(
            f"there is no target for this machine, {machine or 'whose name is not known'}",
            hint=f"compile for one of {', '.join(PRESETS)}",
        )
    plain, sizes = PLAIN[machine], cache_sizes()
    caches = {f"l{level}": size for level, size in sizes.items() if level <= 3}
    return plain.having(name="cpu", cores=usable_cores(), page=page_size(), **caches)


def use_measured(core: KnownCore) -> None:
    """Sets the measured facts *core* for new targets of this machine; targets made before keep theirs."""
    MEASURED[processor_key(cpuinfo())] = core
    cpu.cache_clear()
    host.cache_clear()


PRESETS: Final[dict[str, Callable[[], Target]]] = {
    "cpu": host,
    **{f"cpu -mattr={level}": partial(cpu, level) for level in LEVELS},
    "aarch64": lambda: PLAIN["aarch64"],
    "c": lambda: C,
    "c-vector": lambda: C_VECTOR,
    "opencl": opencl,
    "webgpu": lambda: WEBGPU,
    "metal": lambda: METAL,
    "cuda": cuda,
    **{f"cuda -arch={arch}": partial(cuda, arch) for arch in LISTED},
}
"""The targets by the names that users write; a name may have options after its first word, see `parse_target`."""


ALIASES: Final = {"vulkan": "webgpu"}
"""Other names of targets: kernels for WebGPU run by way of Vulkan where a system has that."""

_VARIANTS: Final[dict[str, tuple[str, Callable[[str], Target]]]] = {
    "cpu": ("-mattr", cpu),
    "cuda": ("-arch", cuda),
    "opencl": ("-device", opencl),
}
"""The option of a target by which it is one of several, and the function that makes that one."""


def parse_target(text: str) -> Target:
    """Returns the target that *text* describes: a name of `PRESETS`, and `-cores=N` if need be, or a device's and a processor's.

    Raises `InputError` for anything else.
    """
    first, plus, second = check_text("target", text, TARGETS).partition("+")
    made = _parse_one(first)
    return _beside(made, _parse_one(second)) if plus else made


def _beside(device: Target, processor: Target) -> Target:
    """Returns the target of a device with the host's processor beside it."""
    if device.isa.language not in APIS:
        raise InputError(f"{device.name} is no device", hint='name the device first, as in "cuda+cpu"')
    if processor.kind != "cpu" or not processor.isa.machine:
        raise InputError(
            f"{processor.name} can't be beside {device.name}: it is no processor of a host",
            hint=f'use "{device.name}+cpu"',
        )
    return replace(device, processor=processor)


def _parse_one(text: str) -> Target:
    """Returns the target that *text* describes, of one machine."""
    kind, *options = text.split() or [""]
    kind = ALIASES.get(kind, kind)
    if kind not in PRESETS:
        raise InputError(f"there is no target {kind!r}", hint=TARGETS)
    own, make = _VARIANTS.get(kind, ("", cpu))
    variants = [o.removeprefix(f"{own}=") for o in options if own and o.startswith(f"{own}=")]
    target = make(variants[-1]) if variants else PRESETS[kind]()
    for option in options:
        key, _, value = option.partition("=")
        if key == "-cores" and _CORES.fullmatch(value):
            target = target.having(cores=int(value))
        elif not own or key != own:
            known = {"cpu": "-mattr=LEVEL or -cores=N", "cuda": "-arch=sm_N", "opencl": "-device=any"}.get(
                kind, "-cores=N"
            )
            raise InputError(f"target option {option!r} is not understood", hint=f"use {known}")
    return target


def can_run(target: Target) -> bool:
    """Tells whether code for *target* runs on this machine: it is for this architecture, and for features that it has.

    Source in C runs where there is a compiler, `cc`; kernels for a device where there is one, and for the processor beside it.
    """
    if target.isa.language in APIS:
        return bool(device_names(target.isa.language)) and (target.processor is None or can_run(target.processor))
    if target.isa.language:
        return target.isa.language == "c" and shutil.which("cc") is not None
    machine = target.isa.machine
    return machine != "" and machine == machine_name() and not missing_flags(target)


def missing_flags(target: Target) -> list[str]:
    """Returns Linux's names for the features that code for *target* needs and this processor lacks, sorted."""
    return sorted(set(needed_flags(target)) - host_flags())


def needed_flags(target: Target) -> tuple[str, ...]:
    """Returns Linux's names for the features that code for *target* needs of the processor."""
    machine = target.isa.machine
    features = [f.removeprefix("+") for f in target.isa.features if f not in BASELINE.get(machine, ())]
    return tuple([linux_name(f) if machine == "x86_64" else ARM_FLAGS.get(f, f) for f in features])
