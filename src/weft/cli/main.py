"""The `weft` command: exit code 0 when done, 1 when it failed, 2 when it was called wrongly."""

from __future__ import annotations

import sys

import typer
from rich.console import Console
from rich.markup import escape

from weft.cli.bench import bench
from weft.cli.compile import compile_command
from weft.cli.demo import demo
from weft.cli.inspect import inspect
from weft.cli.run import run
from weft.cli.targets import targets
from weft.support.errors import WeftError

app = typer.Typer(
    name="weft",
    help="Weft compiles trained models to fast code with nothing behind it.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
app.command("compile")(compile_command)
app.command()(run)
app.command()(bench)
app.command()(inspect)
app.command()(targets)
app.command()(demo)


def main() -> None:
    """Runs the command; an error of Weft's own is told in words, without a traceback."""
    try:
        app()
    except WeftError as error:
        Console(stderr=True, highlight=False).print(f"[bold red]error:[/] {escape(str(error))}", soft_wrap=True)
        sys.exit(1)
    except BrokenPipeError:
        sys.exit(1)


if __name__ == "__main__":
    main()
