"""The `weft` command. Exit codes: 0 success, 1 failure, 2 wrong usage."""

from __future__ import annotations

import os
import re
import sys
import traceback
import warnings
from typing import Annotated, Any, Final

import typer
from rich.markup import escape

import weft
from weft.cli.console import err, voice
from weft.cli.lazy import LOOKS, add_commands, lazy_group
from weft.support.errors import WeftError

COMMANDS: Final = {
    "compile": "weft.cli.compile:compile_command",
    "run": "weft.cli.run:run",
    "bench": "weft.cli.bench.command:bench",
    "tune": "weft.cli.tune.command:tune",
    "inspect": "weft.cli.inspect:inspect",
    "report": "weft.cli.report.command:report",
    "targets": "weft.cli.targets:targets",
    "cache": "weft.cli.cache:cache_app",
    "records": "weft.cli.records.command:records_app",
    "doctor": "weft.cli.doctor.command:doctor",
    "demo": "weft.cli.demo:demo",
}
"""Where each command is."""

BUG: Final = "report it with the command and what it prints with -v"

app = typer.Typer(
    name="weft",
    cls=lazy_group(COMMANDS),
    help="Weft compiles trained models to fast code that runs without a framework.",
    epilog="Begin with: weft demo. The shell completes commands and options after: weft --install-completion",
    no_args_is_help=True,
    **LOOKS,
)
add_commands(app, COMMANDS)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"weft {weft.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Weft compiles trained models to fast code that runs without a framework."""


def main() -> None:
    """Runs the command; errors are reported as messages, without a traceback."""
    warnings.showwarning = _show_warning
    voice.verbose = False
    try:
        _finish(_run())
    except BrokenPipeError:  # whoever read the output has seen enough
        _drop_output()
        sys.exit(1)
    except OSError as error:
        _drop_output()
        _complain(f"the output can't be written: {error.strerror or error}")
        sys.exit(1)


def _run() -> int:
    try:
        app()
    except WeftError as error:
        _complain(str(error))
        _explain(error)
        return 1
    except MemoryError as error:
        _complain(f"there is not enough memory: {error}" if str(error) else "there is not enough memory")
        return 1
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else int(done.code is not None)
    except OSError as error:
        if error.filename is None:
            raise  # it is the output that can't be written
        _complain(f"{os.fsdecode(error.filename)} can't be used: {error.strerror or error}\n  hint: give another path")
        _explain(error)
        return 1
    except Exception as error:
        _complain(f"this is a bug in Weft: {type(error).__name__}: {error}\n  hint: {BUG}")
        _explain(error)
        return 1
    return 0


def _explain(error: Exception) -> None:
    """Prints the traceback of an error and its causes, for --verbose."""
    if voice.verbose:
        err.print("".join(traceback.format_exception(error)), markup=False)


def _finish(code: int) -> None:
    """Ends the process, once all output has arrived."""
    sys.stdout.flush()
    sys.exit(code)


def _drop_output() -> None:
    """Discards the text still in the buffers of the standard output, so that Python does not stumble over it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str) -> None:
    err.print(f"[bold red]error:[/] {escape(_hanging(message))}")


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    err.print(f"[yellow]warning:[/] {escape(_hanging(str(message)))}")


def _hanging(message: str) -> str:
    """Returns *message* with its lines after the first indented: a name with a newline in it begins no line of its own."""
    return re.sub(r"\n(?=\S)", "\n  ", message)


if __name__ == "__main__":
    main()
