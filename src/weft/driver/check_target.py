"""Refuses code that this machine can't run, before any of it is made."""

from __future__ import annotations

from weft.runtime.devices import APIS, device_names, install_hint, why_missing
from weft.support.errors import InputError, ToolchainError
from weft.targets import Target, can_run


def check_runs_here(target: Target, text: str, hint: str) -> None:
    """Raises an error if code for *target*, which the user called *text*, can't run on this machine."""
    if can_run(target):
        return
    if target.isa.language in APIS and not device_names(target.isa.language):
        raise ToolchainError(
            f"code for {text!r} does not run here: {why_missing(target.isa.language)}",
            hint=install_hint(target.isa.language),
        )
    if target.isa.language and target.processor is None:
        raise ToolchainError(
            f"code for {text!r} runs here only where there is a C compiler, and there is none",
            hint=f"apt install gcc, or the like; or {hint}",
        )
    raise InputError(f"code for {text!r} does not run on this machine", hint=hint)
