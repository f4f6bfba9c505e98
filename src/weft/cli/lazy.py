"""Commands whose modules are imported when they are called: the help, and commands without the compiler, do not wait for it.

The list of all commands describes each by the first line of its docstring, read from the source.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from weft.support.lazy_import import resolve

SETTINGS: Final = {"help_option_names": ["-h", "--help"]}
LOOKS: Final[dict[str, Any]] = {
    "pretty_exceptions_enable": False,
    "rich_markup_mode": "markdown",
    "context_settings": SETTINGS,
}


def tidy(params: Sequence[Any]) -> Sequence[Any]:
    """Returns parameters as help shows them: flags take no value, and arguments are in capitals."""
    for p in params:
        if p.param_type_name == "argument":
            p.metavar = p.metavar or p.name.upper()
        elif p.is_flag:
            p.metavar = ""
    return params


class Command(TyperCommand):
    """A command whose help is tidy."""

    def get_params(self, ctx: Any) -> Any:
        """Returns the parameters, that of the help too."""
        return tidy(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Returns the words of the usage; required arguments are not in braces, as the shells' manuals have it."""
        return [re.sub(r"^\{(.*)\}(\.*)$", r"\1\2", piece) for piece in super().collect_usage_pieces(ctx)]


class Group(TyperGroup):
    """A group of commands whose help is tidy."""

    def get_params(self, ctx: Any) -> Any:
        """Returns the parameters, that of the help too."""
        return tidy(super().get_params(ctx))


def lazy_group(places: Mapping[str, str]) -> type[TyperGroup]:
    """Returns the class of a group that has its commands from *places*: `module:function`, or `module:app`, by name."""

    class LazyGroup(Group):
        """A group whose commands are imported when they are called."""

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            """Replaces the stand-in of the command that is called by the command."""
            if args and args[0] in places:
                self.commands[args[0]] = load(args[0], places[args[0]])
            return super().resolve_command(ctx, args)

    return LazyGroup


def add_commands(app: typer.Typer, places: Mapping[str, str]) -> None:
    """Adds a stand-in for each command in a list."""
    for name, place in places.items():
        app.command(name, help=first_line(place))(_stand_in)


def _stand_in() -> None:
    """Never called: the group replaces it."""


def load(name: str, place: str) -> Any:
    """Imports a command, as it is called by the command line."""
    found = resolve(place)
    if not isinstance(found, typer.Typer):
        function, found = found, typer.Typer(add_completion=False, **LOOKS)
        found.command(name, cls=Command)(function)
    made: Any = typer.main.get_command(found)
    for command in (
        made,
        *getattr(made, "commands", {}).values(),
    ):  # indented, examples would be code with lines around it
        command.help = re.sub(r"^ {4}", "", inspect.cleandoc(command.help or ""), flags=re.MULTILINE)
    made.name = name
    return made


def first_line(place: str) -> str:
    """Returns the first line of the docstring of the function in *place*, or of its module for a group of commands."""
    module, _, attribute = place.partition(":")
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        return ""
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    found = [s for s in tree.body if isinstance(s, ast.FunctionDef) and s.name == attribute]
    text = ast.get_docstring(found[0]) if found else (ast.get_docstring(tree) or "").partition(": ")[2]
    line = (text or "").partition("\n")[0]
    return line[:1].upper() + line[1:]
