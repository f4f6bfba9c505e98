"""The options of passes: keyword parameters of the function that a pass is, each declared there alone.

    def unswitch_loops(program, target, *, depth: Annotated[int, "conditions taken out of one loop"] = 2): ...

The name, type, meaning and default of an option are read from the signature. `weft.compile(passes=["unswitch_loops.depth=1"])`
and `--pass unswitch_loops.depth=1` set it, `unswitch_loops=off` skips the pass.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias, get_args, get_origin, get_type_hints

from weft.support.arguments import check_many
from weft.support.errors import InputError

Value: TypeAlias = bool | int | float | str

FORM: Final = "write PASS=off to skip a pass, PASS.OPTION=VALUE for an option of it"

OFF: Final = "off"

_TRUTHS: Final = {"true": True, "false": False}


@dataclass(frozen=True)
class PassOption:
    """An option of a pass: its name, the type of its values, its meaning, and its default."""

    name: str
    kind: type
    meaning: str
    default: Value

    def __str__(self) -> str:
        return f"{self.name}={str(self.default).lower() if self.kind is bool else self.default}: {self.meaning}"

    def parse(self, text: str) -> Value:
        """Returns the value that *text* is; raises `ValueError` where it is none of the option's type."""
        if self.kind is bool:
            if text not in _TRUTHS:
                raise ValueError(f"{text!r} is neither true nor false")
            return _TRUTHS[text]
        value: Value = self.kind(text)
        return value


def options_of(function: Callable[..., Any]) -> dict[str, PassOption]:
    """Returns the options of a pass by name: the keyword-only parameters of *function* whose types are `Annotated`."""
    own = inspect.unwrap(function)
    given = [p for p in inspect.signature(own).parameters.values() if p.kind is p.KEYWORD_ONLY]
    hints = get_type_hints(own, include_extras=True) if given else {}
    found: dict[str, PassOption] = {}
    for p in given:
        if get_origin(hints[p.name]) is Annotated:
            kind, meaning = get_args(hints[p.name])[:2]
            found[p.name] = PassOption(p.name, kind, meaning, p.default)
    return found


@dataclass(frozen=True)
class Setting:
    """A user's setting of the pass *name*: it is skipped, or the *value* of its *option*, as text."""

    name: str
    option: str
    value: str

    @property
    def skips(self) -> bool:
        """Whether the pass is not to run."""
        return not self.option and self.value == OFF


def parse_setting(text: str) -> Setting:
    """Returns a setting such as `unswitch_loops=off` or `unswitch_loops.depth=1`; raises `InputError` for another form."""
    place, equals, value = text.partition("=")
    name, dot, option = place.partition(".")
    if not equals or not name or not value or bool(dot) != bool(option) or (not dot and value != OFF):
        raise InputError(f"{text!r} is no setting of a pass", hint=FORM)
    return Setting(name, option, value)


def check_form(passes: Iterable[str]) -> tuple[str, ...]:
    """Returns settings sorted, each once; raises `InputError` for one of another form, or an option set twice.

    Whether there are such passes and options is known to those who have the passes: see `check_settings`.
    """
    texts = [passes] if isinstance(passes, str) else check_many("passes", passes, FORM)
    found: dict[tuple[str, str], str] = {}
    for text in texts:
        if not isinstance(text, str):
            raise InputError(f"{text!r} is no setting of a pass", hint=FORM)
        s = parse_setting(text)
        if found.setdefault((s.name, s.option), text) != text:
            raise InputError(f"passes has both {found[s.name, s.option]!r} and {text!r}", hint="give one of them")
    return tuple(sorted(found.values()))


def check_settings(
    settings: Iterable[str], options: Mapping[str, Mapping[str, PassOption]], optional: Iterable[str]
) -> None:
    """Raises `InputError` for settings of passes or options that there are not, listing those that there are.

    *options* are those of each pass, by its name; *optional* names the passes that may be skipped.
    """
    may_skip = set(optional)
    for text in settings:
        s = parse_setting(text)
        if s.name not in options:
            raise InputError(f"there is no pass {s.name}", hint=_listing(options, may_skip))
        if s.skips and s.name not in may_skip:
            raise InputError(f"the pass {s.name} can't be skipped", hint=_listing(options, may_skip))
        if s.skips:
            continue
        if s.option not in options[s.name]:
            raise InputError(f"the pass {s.name} has no option {s.option}", hint=_listing(options, may_skip))
        option = options[s.name][s.option]
        try:
            option.parse(s.value)
        except ValueError as error:
            raise InputError(f"{text!r} sets no {option.kind.__name__} ({error})", hint=str(option)) from None


def _listing(options: Mapping[str, Mapping[str, PassOption]], optional: set[str]) -> str:
    """Returns the passes that may be skipped or have options, a line each, with a line for each option."""
    lines = ["the passes and their options are"]
    for name, own in options.items():
        if name in optional or own:
            lines.append(f"{name}{'=off' if name in optional else ''}")
            lines += [f"    {name}.{option}" for option in own.values()]
    return "\n    ".join(lines)
