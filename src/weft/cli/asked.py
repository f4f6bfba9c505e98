"""The options that all commands which compile have in common: written once, read once.

@compiling
def run(model: Model, asked: Asked, random: Annotated[bool, ...] = False) -> None:

takes --target, --shape, -O and the rest where `asked` stands.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from weft.cli.console import (
    Bar,
    Json,
    NoCache,
    OptLevel,
    Precision,
    Quiet,
    Shape,
    Target,
    Verbose,
    Verify,
    Without,
    parse_shapes,
    progress_bar,
)
from weft.driver.cache import Cache, default_cache
from weft.driver.options import Options, check_options
from weft.targets.cpu import parse_target
from weft.targets.target import Target as Machine

Model = Annotated[Path, typer.Argument(help="An ONNX file, or a compiled model.", show_default=False)]


@dataclass(frozen=True)
class Asked:
    """What was asked on the command line of a compilation."""

    target: Target = "cpu"
    shape: Shape = None
    opt_level: OptLevel = 3
    precision: Precision = "model"
    without: Without = None
    verify: Verify = False
    no_cache: NoCache = False
    as_json: Json = False
    quiet: Quiet = False
    verbose: Verbose = False

    @property
    def options(self) -> Options:
        """What the compiler is to do; raises `InputError` for what there is not."""
        return check_options(self.opt_level, self.precision, self.verify, without=self.without or ())

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes of symbolic dimensions; raises a usage error for what is none."""
        return parse_shapes(self.shape)

    def cache(self) -> Cache | None:
        """Returns the cache, unless it is not to be used."""
        return None if self.no_cache else default_cache()

    def machine(self) -> Machine:
        """Returns what to compile for; raises `InputError` for what there is not."""
        return parse_target(self.target)

    def check(self) -> None:
        """Raises an error for what can't be asked, before any work."""
        _ = self.options, self.sizes, self.machine()

    @contextmanager
    def progress(self) -> Iterator[Bar]:
        """Gives a progress bar."""
        with progress_bar(self.quiet or self.as_json, self.verbose) as bar:
            yield bar


def compiling(command: Callable[..., None]) -> Callable[..., None]:
    """Returns *command* with the fields of `Asked` as options, in place of its parameter `asked`, after all others."""
    signature = inspect.signature(command, eval_str=True)
    own = [p for p in signature.parameters.values() if p.name != "asked"]
    hints = get_type_hints(Asked, include_extras=True)
    names = [f.name for f in fields(Asked)]
    kind = inspect.Parameter.KEYWORD_ONLY
    shared = [inspect.Parameter(f.name, kind, default=f.default, annotation=hints[f.name]) for f in fields(Asked)]

    @functools.wraps(command)
    def called(**given: Any) -> None:
        asked = Asked(**{name: given.pop(name) for name in names})
        asked.check()
        command(asked=asked, **given)

    vars(called)["__signature__"] = inspect.Signature([*[p.replace(kind=kind) for p in own], *shared])
    called.__annotations__ = {}
    return called
