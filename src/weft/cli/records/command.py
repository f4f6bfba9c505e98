"""`weft records`: look into databases of tuning records, and keep them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

import weft
from weft.cli.console import Json, Quiet, human_age, human_time, out, print_json, print_table, print_text
from weft.cli.lazy import LOOKS, Command, Group
from weft.cli.records.export_pack import export_packs
from weft.cli.records.record_text import COLUMNS, cells, facts, find_record, label_of, machine_of
from weft.records import Store, add_lines, lines_of, salvage
from weft.support.errors import InputError, RecordsError
from weft.support.files import check_output, write_output

DAY = 24 * 3600.0

Database = Annotated[Path, typer.Argument(metavar="DB", help="A file of tuning records.", show_default=False)]

records_app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    add_completion=False,
    help="Inspect and maintain databases of tuning records.",
    **LOOKS,
)


@records_app.command("ls", cls=Command)
def ls(db: Database, as_json: Json = False) -> None:
    """List the records, each workload's fastest first.

    "x" is the speedup over the incumbent; "checked" tells whether the outputs were compared with the incumbent's.

    Examples:

        weft records ls tune.db

        weft records ls tune.db --json
    """
    with Store(db, read_only=True) as store:
        found = store.records()
        if as_json:
            print_json([facts(r, store) for r in found])
        elif found:
            print_table(COLUMNS, [cells(r, store) for r in found], elastic="what")
        else:
            out.print(f"{db} holds no records, and {store.counts()['measurement']} measurements", markup=False)


@records_app.command("show", cls=Command)
def show(
    db: Database,
    key: Annotated[str, typer.Argument(help="The key of a record, or its beginning; see ls.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Show a record: its workload, times and plan.

    Examples:

        weft records show tune.db 3fa4

        weft records show tune.db 3fa4 --json
    """
    with Store(db, read_only=True) as store:
        record = find_record(store, key)
        if as_json:
            print_json({**facts(record, store), "plan": record.plan, "trace": record.trace})
            return
        label, machine = label_of(record, store), machine_of(record, store)
    low, median, high = (human_time(s) for s in (record.low, record.seconds, record.high))
    base = "" if record.baseline is None else f", the incumbent {human_time(record.baseline)}"
    checked = "results checked" if record.verified else "results not checked, so that no compilation follows it"
    age = human_age(time.time() - record.time)
    print_text(f"record   {record.digest}")
    print_text(f"for      {label}")
    print_text(f"on       {machine}, target {record.target}, threads {record.threads}")
    print_text(f"takes    {median} ({low} to {high}){base}; {checked}")
    print_text(f"made by  {record.origin or 'hand'}, Weft {record.weft}, {age}")
    print_text(f"\n{record.plan}")


@records_app.command("merge", cls=Command)
def merge(
    db: Database,
    others: Annotated[list[Path], typer.Argument(metavar="OTHER", help="Files to copy from.", show_default=False)],
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Copy the records of other files into DB, which is created if it does not exist.

    The result does not depend on the order in which files are merged, or on how often.

    Examples:

        weft records merge tune.db laptop.db server.db
    """
    for path in others:
        Store(path, read_only=True).close()  # before DB is made
    added = 0
    with Store(db) as store:
        for path in others:
            with Store(path, read_only=True) as other:
                added += store.merge(other)
    _tell({"db": str(db), "added": added}, f"{added} entries were new to {db}", as_json=as_json, quiet=quiet)


@records_app.command("export", cls=Command)
def export(
    db: Database,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file to write, or the folder of packs.", show_default=False)
    ],
    pack: Annotated[
        bool, typer.Option("--pack", help="Write packs: the best record of each workload, if faster beyond noise.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write the contents of DB as JSON lines, or its best records as packs, one for each machine.

    Examples:

        weft records export tune.db -o tune.jsonl

        weft records export tune.db --pack -o src/weft/records/packs
    """
    if pack:
        with Store(db, read_only=True) as store:
            written = export_packs(store, output)
        told = "\n".join([f"wrote {path}: {count} records" for path, count in written.items()])
        _tell({"packs": {str(path): count for path, count in written.items()}}, told, as_json=as_json, quiet=quiet)
        return
    check_output(output)
    if output.exists() and db.exists() and output.samefile(db):
        raise InputError(f"{output} is the database itself", hint="choose another name")
    with Store(db, read_only=True) as store:
        write_output(output, lambda file: file.writelines(line.encode() for line in lines_of(store)))
        count = sum(store.counts().values())
    _tell({"file": str(output), "entries": count}, f"wrote {output}: {count} entries", as_json=as_json, quiet=quiet)


@records_app.command("import", cls=Command)
def import_lines(
    db: Database,
    file: Annotated[Path, typer.Argument(help="A file that export wrote.", show_default=False)],
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Add the records in a file written by `weft records export` to DB, which is created if it does not exist.

    Examples:

        weft records import tune.db tune.jsonl
    """
    try:
        lines = file.read_bytes().splitlines()
    except (OSError, ValueError) as error:
        told = getattr(error, "strerror", None) or error
        raise RecordsError(f"{file} can't be read: {told}", hint="give another path") from None
    with Store(db) as store:
        added = add_lines(store, lines, str(file))
    _tell({"db": str(db), "added": added}, f"{added} entries were new to {db}", as_json=as_json, quiet=quiet)


@records_app.command("prune", cls=Command)
def prune(
    db: Database,
    keep: Annotated[
        int | None, typer.Option("--keep", min=1, help="Keep this many records of each workload and machine.")
    ] = None,
    older_than: Annotated[
        float | None, typer.Option("--older-than", metavar="DAYS", min=0, help="Remove entries older than DAYS days.")
    ] = None,
    other_versions: Annotated[
        bool, typer.Option("--other-versions", help="Remove measurements by other versions of Weft.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Remove obsolete records and measurements.

    Examples:

        weft records prune tune.db --keep 3

        weft records prune tune.db --older-than 365 --other-versions
    """
    if keep is None and older_than is None and not other_versions:
        raise typer.BadParameter("give --keep, --older-than or --other-versions")
    Store(db, read_only=True).close()  # none is made
    before = None if older_than is None else time.time() - older_than * DAY
    with Store(db) as store:
        lost = store.prune(keep, before, weft.__version__ if other_versions else None)
    told = f"removed {lost['record']} records and {lost['measurement']} measurements from {db}"
    _tell({"db": str(db), "removed": lost}, told, as_json=as_json, quiet=quiet)


@records_app.command("salvage", cls=Command)
def salvage_command(
    db: Database,
    into: Annotated[Path, typer.Argument(metavar="NEW", help="The file to create.", show_default=False)],
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Copy the readable part of a damaged DB to a new file.

    Examples:

        weft records salvage tune.db saved.db
    """
    found = salvage(db, into)
    count = found.copied
    told = f"wrote {into}: {count['record']} records and {count['measurement']} measurements"
    left = "" if found.complete and not found.unfit else "; there were some that could not be read"
    figures = {"file": str(into), "copied": count, "unfit": found.unfit, "complete": found.complete}
    _tell(figures, told + left, as_json=as_json, quiet=quiet)


def _tell(figures: dict[str, object], text: str, *, as_json: bool, quiet: bool) -> None:
    """Prints the outcome as JSON or as text, as asked."""
    if as_json:
        print_json(figures)
    elif not quiet:
        out.print(text, markup=False)
