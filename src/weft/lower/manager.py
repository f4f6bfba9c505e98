"""The pass manager for loop programs, and reproducers of crashes: files with the program as text."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, TypeAlias

from weft.loop import Program, parse_program, print_program
from weft.loop import verify as check_program
from weft.support.errors import LoweringError
from weft.support.knobs import Switches
from weft.support.passes import EVERYTHING, Language, Pass, PassManager, Report
from weft.targets import Target

ProgramPass: TypeAlias = Pass[Program, Target]
"""A lowering pass: the context of its rewrite is the target."""

ProgramReport: TypeAlias = Report[Program]

_PASS: Final = "# pass: "
_TARGET: Final = "# target: "
_SETTINGS: Final = "# settings: "


def run_passes(
    passes: Iterable[ProgramPass],
    program: Program,
    target: Target,
    switches: Switches = EVERYTHING,
    *,
    verify: bool = False,
    trace: Callable[[ProgramReport], None] | None = None,
) -> Program:
    """Returns *program* after all *passes* that are on; see `pipeline.lower`."""
    return MANAGER.run(passes, program, target, switches, verify=verify, trace=trace)


def save_reproducer(folder: Path, name: str, program: Program, target: Target, switches: Switches) -> Path:
    """Writes *program* with the pass that failed on it, the name of the target and the settings to a file in *folder*."""
    settings = f"{_SETTINGS}{' '.join(switches.passes)}\n" if switches.passes else ""
    text = f"{_PASS}{name}\n{_TARGET}{target.name}\n{settings}{print_program(program)}"
    path = folder / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.txt"
    path.write_text(text, encoding="utf-8")
    return path


def saved_target(path: Path | str) -> str:
    """Returns the name of the target in a file of `save_reproducer`."""
    return Path(path).read_text(encoding="utf-8").splitlines()[1].removeprefix(_TARGET)


def reproduce(path: Path | str, passes: Iterable[ProgramPass], target: Target) -> Program:
    """Runs the pass named in a file of `save_reproducer` on the program in it, and verifies the program that it leaves.

    Raises the pass's own error, or `LoweringError` if *passes* has none of that name.
    """
    text = Path(path).read_text(encoding="utf-8")
    name = text.partition("\n")[0].removeprefix(_PASS)
    settings = [line.removeprefix(_SETTINGS).split() for line in text.splitlines() if line.startswith(_SETTINGS)]
    switches = Switches(passes=tuple(*settings))
    return MANAGER.again(passes, name, parse_program(text), target, switches, Path(path))


MANAGER: Final[PassManager[Program, Target]] = PassManager(
    Language("program", check_program, print_program, lambda program: f"{len(program.functions):6} functions"),
    save_reproducer,
    refusals=(LoweringError,),
)
