"""Runs passes one after another: verified, timed, traced, and with a file to reproduce each crash from."""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Final

from weft.loop.nodes import Program
from weft.loop.parser import parse_program
from weft.loop.printer import print_program
from weft.loop.verify import verify as check_program
from weft.support.errors import LoweringError, VerifyError, WeftError
from weft.targets.target import Target

_HEADER: Final = "# pass: "


@dataclass(frozen=True)
class Pass:
    """A rewrite of programs under the name that reports and reproducers know it by; it may ask for the target's facts."""

    name: str
    rewrite: Callable[..., Program]

    def __call__(self, program: Program, target: Target) -> Program:
        """Returns *program* rewritten."""
        return self.rewrite(program, target) if _asks_for_target(self.rewrite) else self.rewrite(program)


@cache
def _asks_for_target(rewrite: Callable[..., Program]) -> bool:
    return "target" in signature(rewrite).parameters


@dataclass(frozen=True, eq=False)
class Report:
    """What a pass did: the program it left, the seconds it took, whether anything changed."""

    name: str
    program: Program
    seconds: float
    changed: bool

    def text(self) -> str:
        """Returns the report as text: the program, unless it is the one before."""
        head = f"# {self.name}: {self.seconds * 1e3:.2f} ms"
        return f"{head}\n{print_program(self.program)}" if self.changed else f"{head} (unchanged)\n"


def run_passes(
    passes: Iterable[Pass],
    program: Program,
    target: Target,
    *,
    verify: bool = False,
    trace: Callable[[Report], None] | None = None,
) -> Program:
    """Returns *program* after all *passes*; see `pipeline.lower`."""
    for p in passes:
        start = time.perf_counter()
        made = _run(p, program, target, verify=verify)
        if trace is not None:
            trace(Report(p.name, made, time.perf_counter() - start, made is not program))
        program = made
    return program


def _run(p: Pass, program: Program, target: Target, *, verify: bool) -> Program:
    try:
        made = p(program, target)
        if verify and made is not program:
            check_program(made)
    except LoweringError:
        raise
    except Exception as error:
        raise _crash(p, program, error) from error
    return made


def _crash(p: Pass, program: Program, error: Exception) -> LoweringError:
    did = (
        "left a program that breaks its rules" if isinstance(error, VerifyError) else f"failed ({type(error).__name__})"
    )
    try:
        saved = f"the program before it is in {save_reproducer(p.name, program)}"
    except (WeftError, OSError) as other:
        saved = f"the program before it could not be saved ({other})"
    return LoweringError(f"the pass {did}: {error}", where=f"pass {p.name}", hint=f"{saved}; `reproduce` runs it again")


def save_reproducer(name: str, program: Program) -> Path:
    """Writes *program* and the name of the pass that failed on it to a file of the system's temporary folder."""
    text = f"{_HEADER}{name}\n{print_program(program)}"
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    folder = Path(tempfile.mkdtemp(prefix="weft-"))
    path = folder / f"{name}-{digest}.txt"
    path.write_text(text, encoding="utf-8")
    return path


def reproduce(path: Path | str, passes: Iterable[Pass], target: Target) -> Program:
    """Runs the pass named in a file of `save_reproducer` on the program in it, and verifies what it leaves.

    Raises what the pass raises, or `LoweringError` if *passes* has none of that name.
    """
    head, _, text = Path(path).read_text(encoding="utf-8").partition("\n")
    name = head.removeprefix(_HEADER)
    for p in passes:
        if p.name == name:
            made = p(parse_program(text), target)
            check_program(made)
            return made
    raise LoweringError(f"there is no pass {name}", where=str(path), hint="its name is on the first line of the file")
