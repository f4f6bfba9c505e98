"""Execution providers: the processor. Lists of providers, as programs for ONNX Runtime have them, fall back to it."""

from __future__ import annotations

import warnings
from typing import Final

from weft.runtime.session_options import refuse
from weft.support.errors import InputError

CPU_PROVIDER: Final = "CPUExecutionProvider"


def get_available_providers() -> list[str]:
    """Returns the providers that can run models here: the processor alone."""
    return [CPU_PROVIDER]


def get_all_providers() -> list[str]:
    """Returns the providers that could exist anywhere: the processor alone."""
    return get_available_providers()


def get_device() -> str:
    """Returns the kind of device that models run on, as ONNX Runtime names it: "CPU"."""
    return "CPU"


def check_providers(providers: object, provider_options: object, stacklevel: int = 3) -> None:
    """Checks that the processor's provider is among *providers*, in order of preference; warns of those before and after it.

    A provider is a name, or a name and its options; *provider_options* are those of the list, one by one. Raises `InputError`
    for a list without `CPUExecutionProvider`. *stacklevel* says whose call it is, as for `warnings.warn`.
    """
    if providers is None:
        if provider_options:
            refuse(f"provider_options = {provider_options!r}", "there are no providers", "leave it out")
        return
    pairs = _with_options(providers, provider_options)
    missing = [name for name, _ in pairs if name != CPU_PROVIDER]
    if missing and len(missing) == len(pairs):
        refuse(_listed(missing), f"models run on {CPU_PROVIDER} alone", f"add {CPU_PROVIDER!r} to the list")
    if missing:
        text = f"{_listed(missing)} can't be used here: the model runs on {CPU_PROVIDER}"
        warnings.warn(text, stacklevel=stacklevel)
    for name, options in pairs:
        if name == CPU_PROVIDER and options:
            text = f"{options!r} for {name} has no effect: it has no options here"
            warnings.warn(text, stacklevel=stacklevel)


def _with_options(providers: object, provider_options: object) -> list[tuple[str, object]]:
    """Returns the name of each provider, and its options: its own, or else those that *provider_options* has for it."""
    named = [providers] if isinstance(providers, str) else providers
    if not isinstance(named, list | tuple):
        raise InputError(f"providers is {providers!r}", hint=f"give a list, such as [{CPU_PROVIDER!r}]")
    given = [None] * len(named) if provider_options is None else provider_options
    if not isinstance(given, list | tuple):
        raise InputError(f"provider_options is {given!r}", hint="give a list, with a dict for each provider")
    if len(given) != len(named):
        raise InputError(f"{len(named)} providers have {len(given)} provider_options", hint="give one for each")
    pairs = [_named(provider) for provider in named]
    return [(name, own or more) for (name, own), more in zip(pairs, given, strict=True)]


def _named(provider: object) -> tuple[str, object]:
    """Returns the name of a provider, and its options."""
    name, options = provider if isinstance(provider, tuple) and len(provider) == 2 else (provider, None)
    if not isinstance(name, str):
        raise InputError(
            f"the provider {provider!r} has no name", hint=f"give a name, such as {CPU_PROVIDER!r}, or (name, options)"
        )
    return name, options


def _listed(names: list[str]) -> str:
    return f"the provider{'s' if len(names) > 1 else ''} {', '.join(map(repr, names))}"
