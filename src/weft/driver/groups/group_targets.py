"""Groups with a target of their own. Each target is a module.

    build(model, "cpu", target_of=lambda group: AVX2 if group.name == "softmax" else None)      another processor of the machine
    build(model, "cuda+cpu")                            the processor beside a device, for groups that are placed there

The host program declares a kernel as one of the module that is named like its target. Compiled, all modules are linked to one
image, whose features are those that any of them needs; replayed from bytes, each module is an image of its own. A device's module
is in its memory, the processor's in the host's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from weft.codegen import backend_of
from weft.driver.kernel_request import KernelRequest
from weft.graph import FusedGraph, Group
from weft.runtime.package import Package
from weft.support.errors import InputError
from weft.targets import Target, needed_flags

TargetOf: TypeAlias = Callable[[Group], Target | None]
"""The target of a group that is to have one of its own, or None; the same for groups of equal keys."""


def with_own_targets(
    requests: dict[str, KernelRequest], fused: FusedGraph, target_of: TargetOf | None, machine: Target
) -> dict[str, KernelRequest]:
    """Returns the requests, by the keys of their groups, with the targets that *target_of* gives these.

    Groups that are placed on the processor beside *machine* have that. Raises `InputError` for one whose code can't be linked
    with that for *machine*.
    """
    made = dict(requests)
    for group in fused.kernel_groups:
        own = machine.processor if group.on_processor else None if target_of is None else target_of(group)
        if own is not None and own != machine:
            if not group.on_processor:
                _check(own, machine, group)
            # a schedule that was made before is one for the model's
            made[group.key] = replace(made[group.key], target=own, cheapest_schedule=None)
    return made


def _check(own: Target, machine: Target, group: Group) -> None:
    is_like = own.kind == machine.kind == "cpu" and own.isa.machine == machine.isa.machine
    if not is_like or backend_of(own) is not backend_of(machine):
        raise InputError(
            f"the kernel {group.name} is to be for {own.name}, in a model for {machine.name}",
            hint="give processors of the same machine, with other features",
        )


def module_names(requests: Mapping[str, KernelRequest], machine: Target) -> dict[str, str]:
    """Returns the module of each kernel: that of its target."""
    return {key: machine.name if r.target is None else r.target.name for key, r in requests.items()}


def with_features(package: Package, requests: Mapping[str, KernelRequest]) -> Package:
    """Returns the package, which needs the features of all targets."""
    own = [f for r in requests.values() if r.target is not None for f in needed_flags(r.target)]
    return replace(package, features=tuple(dict.fromkeys((*package.features, *own)))) if own else package
