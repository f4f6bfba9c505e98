"""Passes and the one manager that runs them, on graphs and on loop programs alike.

    Pass("choose_winograd", choose_winograd, knobs=(WINOGRAD,), exact=False)

A pass's options are the annotated keyword parameters of its function (`pass_options`); settings of a compilation name them.

A pass rewrites an intermediate representation (IR) of type T, given a context C: the facts of the machine, and whatever else
passes of that IR ask for. The manager skips passes that are off, verifies, times and reports the others, and writes a file to
reproduce each crash from.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import update_wrapper
from pathlib import Path
from typing import Final, Generic, Literal, TypeVar

from weft.support.errors import LoweringError, VerifyError, WeftError
from weft.support.knobs import Knob, Switches
from weft.support.pass_options import PassOption, Setting, options_of, parse_setting

T = TypeVar("T")
C = TypeVar("C", contravariant=True)
C2 = TypeVar("C2")

Status = Literal["changed", "unchanged", "skipped"]

EVERYTHING: Final = Switches()


@dataclass(frozen=True)
class Pass(Generic[T, C]):
    """A rewrite under the name that reports and reproducers know it by, and when it runs.

    It runs from `opt_level` on, where none of its `knobs` is off; one that is not `exact`, since results round otherwise after
    it, is left out where precision is strict. One that is `optional`, as all above the lowest level are, may be skipped by
    its name.
    """

    name: str
    run: Callable[[T, C], T]
    opt_level: int = 0
    knobs: tuple[Knob, ...] = ()
    exact: bool = True
    optional: bool = False

    @property
    def may_be_skipped(self) -> bool:
        """Whether programs mean the same, and can be compiled, without the pass."""
        return self.optional or self.opt_level > 0

    @property
    def options(self) -> dict[str, PassOption]:
        """The options by name, as the pass's function declares them."""
        return options_of(self.run)

    def settings(self, switches: Switches) -> list[Setting]:
        """Returns the settings of this pass."""
        return [s for s in map(parse_setting, switches.passes) if s.name == self.name]

    def call(self, ir: T, context: C, switches: Switches) -> T:
        """Returns the pass's result for *ir*, with the options that *switches* set."""
        if not switches.passes:
            return self.run(ir, context)
        run: Callable[..., T] = self.run
        options = self.options
        return run(ir, context, **{s.option: options[s.option].parse(s.value) for s in self.settings(switches)})

    def is_on(self, switches: Switches) -> bool:
        """Tells whether the pass runs."""
        return (
            switches.opt_level >= self.opt_level
            and all(switches.uses(k) for k in self.knobs)
            and (self.exact or not switches.exact)
            and not any(s.skips for s in self.settings(switches))
        )


def alone(rewrite: Callable[[T], T]) -> Callable[[T, object], T]:
    """Returns a rewrite that needs no context in the form that `Pass` takes."""
    return adapted(rewrite, lambda context: ())


def adapted(rewrite: Callable[..., T], facts: Callable[[C2], tuple[object, ...]]) -> Callable[[T, C2], T]:
    """Returns a rewrite that takes some *facts* of a context in the form that `Pass` takes; its options stay known."""

    def run(ir: T, context: C2, **options: object) -> T:
        return rewrite(ir, *facts(context), **options)

    return update_wrapper(run, rewrite)


@dataclass(frozen=True, eq=False)
class Report(Generic[T]):
    """The outcome of a pass: the IR `after` it, the seconds it took, and whether it changed anything, or was skipped."""

    name: str
    after: T
    seconds: float
    status: Status
    language: Language[T]

    @property
    def changed(self) -> bool:
        """Whether the pass left another IR than it was given."""
        return self.status == "changed"

    def line(self) -> str:
        """Returns one line: name, time, the size of the IR after the pass, and "(unchanged)" or "(skipped)"."""
        note = "" if self.changed else f" ({self.status})"
        return f"{self.name:<34} {self.seconds * 1e3:9.2f} ms {self.language.size(self.after)}{note}".rstrip()

    def text(self) -> str:
        """Returns the report with the IR after the pass, where the pass changed it."""
        head = f"# {self.name}: {self.seconds * 1e3:.2f} ms"
        return f"{head}\n{self.language.text(self.after)}" if self.changed else f"{head} ({self.status})\n"


@dataclass(frozen=True)
class Language(Generic[T]):
    """The manager's view of an IR: its `noun`, `verify` (which raises `VerifyError`), its text, and its size in words."""

    noun: str
    verify: Callable[[T], None]
    text: Callable[[T], str]
    size: Callable[[T], str]


@dataclass(frozen=True)
class PassManager(Generic[T, C]):
    """Runs passes one after another.

    `save` writes a reproducer into a folder: the pass's name, the IR that it was given, its context and the switches, from which
    `python -m weft.driver.reproduce FILE` runs the pass again. Errors of the types `refusals` are a pass's own answer to
    its input, and go through, as a lack of memory does; any other is a crash.
    """

    language: Language[T]
    save: Callable[[Path, str, T, C, Switches], Path]
    refusals: tuple[type[Exception], ...]

    def run(
        self,
        passes: Iterable[Pass[T, C]],
        ir: T,
        context: C,
        switches: Switches = EVERYTHING,
        *,
        verify: bool = False,
        trace: Callable[[Report[T]], None] | None = None,
    ) -> T:
        """Returns *ir* after all *passes* that are on; *trace* is given a report of each pass, those that are off too.

        With *verify*, every IR that a pass made is verified. Raises the refusals of passes, and `LoweringError` for a crash.
        """
        for p in passes:
            start = time.perf_counter()
            on = p.is_on(switches)
            made = self._run(p, ir, context, switches, verify=verify) if on else ir
            if trace is not None:
                status: Status = "skipped" if not on else "unchanged" if made is ir else "changed"
                trace(Report(p.name, made, time.perf_counter() - start, status, self.language))
            ir = made
        return ir

    def _run(self, p: Pass[T, C], ir: T, context: C, switches: Switches, *, verify: bool) -> T:
        try:
            made = p.call(ir, context, switches)
            if verify and made is not ir:
                self.language.verify(made)
        except MemoryError:  # no fault of the pass's
            raise
        except self.refusals:
            raise
        except Exception as error:
            raise self._crash(p, ir, context, switches, error) from error
        return made

    def _crash(self, p: Pass[T, C], ir: T, context: C, switches: Switches, error: Exception) -> LoweringError:
        noun = self.language.noun
        broke = isinstance(error, VerifyError)
        did = f"left a {noun} that breaks its rules" if broke else f"failed ({type(error).__name__})"
        try:
            path = self.save(Path(tempfile.mkdtemp(prefix="weft-")), p.name, ir, context, switches)
            hint = f"the {noun} before it is in {path}; `python -m weft.driver.reproduce {path}` runs the pass again"
        except (WeftError, OSError) as other:
            hint = f"the {noun} before it could not be saved ({other})"
        return LoweringError(f"the pass {did}: {error}", where=f"pass {p.name}", hint=hint)

    def again(self, passes: Iterable[Pass[T, C]], name: str, ir: T, context: C, switches: Switches, saved: Path) -> T:
        """Runs the pass called *name* on *ir*, with *switches*, all read from *saved*, and verifies the IR that it leaves.

        Raises the pass's own error, or `LoweringError` if *passes* has none of that name.
        """
        found = next((p for p in passes if p.name == name), None)
        if found is None:
            raise LoweringError(
                f"there is no pass {name}", where=str(saved), hint="give a file of this version of Weft"
            )
        made = found.call(ir, context, switches)
        self.language.verify(made)
        return made
