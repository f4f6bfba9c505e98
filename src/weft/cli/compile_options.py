"""The options that all commands which compile have in common: written once, read once.

@compiling
def run(model: Model, asked: CommandOptions, random: Annotated[bool, ...] = False) -> None:

takes --target, --shape, -O and the rest where `asked` stands.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Final, get_type_hints

import typer

from weft.cli.console import (
    Bar,
    Capacity,
    Denormals,
    Json,
    NoCache,
    OptLevel,
    Passes,
    Precision,
    Quiet,
    Records,
    Shape,
    State,
    Target,
    Verbose,
    Verify,
    Without,
    err,
    parse_capacity,
    parse_shapes,
    parse_states,
    progress_bar,
)
from weft.driver.cache.code_cache import Cache, default_cache
from weft.driver.calibrate import STAGE, target_here
from weft.driver.options import CompileOptions, check_options
from weft.runtime.artifact import is_artifact
from weft.support.dim import Dim
from weft.support.errors import InputError
from weft.targets import Target as Machine

MEASURING: Final = "measuring this processor, which is in no table (once, about a second)"

Model = Annotated[Path, typer.Argument(help="An ONNX file, or a compiled model.", show_default=False)]


@dataclass(frozen=True)
class CompileFlags:
    """The options that affect compilation; they have no effect on a saved model."""

    target: Target = "cpu"
    shape: Shape = None
    opt_level: OptLevel = 3
    precision: Precision = "model"
    denormals: Denormals = "keep"
    without: Without = None
    passes: Passes = None
    verify: Verify = False
    records: Records = None
    state: State = None
    capacity: Capacity = None


@dataclass(frozen=True)
class CommandOptions(CompileFlags):
    """The command line of a compilation: the options of the compiler, and how to report."""

    no_cache: NoCache = False
    as_json: Json = False
    quiet: Quiet = False
    verbose: Verbose = False

    @property
    def options(self) -> CompileOptions:
        """The options of the compiler; raises `InputError` for an unknown one."""
        return check_options(
            self.opt_level,
            self.precision,
            self.verify,
            without=self.without or (),
            denormals=self.denormals,
            passes=self.passes or (),
            records=self.records,
            state=parse_states(self.state) or None,
            capacity=parse_capacity(self.capacity) or None,
        )

    @property
    def sizes(self) -> dict[str, int | Dim]:
        """The sizes of symbolic dimensions, or their ranges; raises a usage error for a text that is not `name=size`."""
        return parse_shapes(self.shape)

    def cache(self) -> Cache | None:
        """Returns the cache, unless it is not to be used."""
        return None if self.no_cache else default_cache()

    def machine(self) -> Machine:
        """Returns the target to compile for; raises `InputError` for an unknown one.

        Tells of it if this machine's processor has to be measured first.
        """
        return target_here(self.target, self._tell, self.cache())

    def _tell(self, stage: str, done: int, total: int) -> None:
        """Reports, once, that the CPU is being measured."""
        if stage == STAGE and done == 0 < total and not (self.quiet or self.as_json):
            err.print(MEASURING, style="dim", markup=False)

    def check(self) -> None:
        """Raises an error for invalid options, before any work."""
        _ = self.options, self.sizes, self.machine()

    @contextmanager
    def progress(self) -> Iterator[Bar]:
        """Gives a progress bar."""
        with progress_bar(self.quiet or self.as_json, self.verbose) as bar:
            yield bar


CONTEXT: Final = "ctx"
"""The parameter in which Typer says which options were given."""


def compiling(command: Callable[..., None], *, reads: Collection[str] = ()) -> Callable[..., None]:
    """Returns *command* with the fields of `CommandOptions` as options, in place of its parameter `asked`, after all others.

    On a saved model, `CompileFlags` that were given raise `InputError`, but for those that the command *reads* itself.
    """
    signature = inspect.signature(command, eval_str=True)
    own = [p for p in signature.parameters.values() if p.name != "asked"]
    hints = get_type_hints(CommandOptions, include_extras=True)
    names = [f.name for f in fields(CommandOptions)]
    kind = inspect.Parameter.KEYWORD_ONLY
    shared = [
        inspect.Parameter(f.name, kind, default=f.default, annotation=hints[f.name]) for f in fields(CommandOptions)
    ]
    context = inspect.Parameter(CONTEXT, kind, annotation=typer.Context)

    @functools.wraps(command)
    def called(**given: Any) -> None:
        asked, ctx = CommandOptions(**{name: given.pop(name) for name in names}), given.pop(CONTEXT)
        asked.check()
        check_saved(given["model"], given_options(ctx, reads))
        command(asked=asked, **given)

    vars(called)["__signature__"] = inspect.Signature([*[p.replace(kind=kind) for p in own], *shared, context])
    called.__annotations__ = {}
    return called


def given_options(ctx: typer.Context, reads: Collection[str] = ()) -> list[str]:
    """Returns the `CompileFlags` that the command line gave, such as `--target`; without those that the command *reads*."""
    sources = {f.name: ctx.get_parameter_source(f.name) for f in fields(CompileFlags) if f.name not in reads}
    flags = {p.name: p.opts[0] for p in ctx.command.params}
    return [flags[name] for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]


def check_saved(model: Path, flags: Sequence[str]) -> None:
    """Raises `InputError` if compile options, *flags*, were given for a *model* that is compiled already."""
    if not flags or not is_artifact(model):
        return
    listed = " and ".join(filter(None, [", ".join(flags[:-1]), flags[-1]]))
    verb, them = ("has", "it") if len(flags) == 1 else ("have", "them")
    raise InputError(
        f"{model} is compiled already: {listed} {verb} no effect on it",
        hint=f"give {them} to `weft compile`, with the model that it was made from",
    )
