"""`weft cache`: look into the cache of compiled code, or empty it."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from weft.cli.console import Json, Quiet, human_age, human_bytes, out, print_json, print_table
from weft.cli.lazy import LOOKS, Command, Group
from weft.driver.cache.code_cache import Entry, default_cache
from weft.driver.cache.describe_entry import about

KINDS = {"model": "models", "kernel": "kernels"}
"""The kinds of entries that are listed; the other kinds only describe these."""

DAY = 24 * 3600.0

cache_app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    add_completion=False,
    help="Look into the cache of compiled code, or empty it.",
    **LOOKS,
)


@cache_app.command("ls", cls=Command)
def ls(
    all_kinds: Annotated[bool, typer.Option("--all", "-a", help="Also list kernels.")] = False,
    as_json: Json = False,
) -> None:
    """List the compiled models in the cache, the most recently used first.

    Examples:

        weft cache ls

        weft cache ls --all --json
    """
    found = [e for e in default_cache().entries() if e.kind == "model" or (all_kinds and e.kind in KINDS)]
    if as_json:
        print_json([_facts(e) for e in found])
        return
    now = time.time()
    cells = [[e.key[:10], e.kind, human_bytes(e.nbytes), human_age(now - e.used), about(e)] for e in found]
    if cells:
        print_table(("key", "kind", "size", "used", "what"), cells, elastic="what")
    else:
        out.print("the cache holds no compiled model" + ("" if all_kinds else "; --all lists kernels too"))


@cache_app.command("size", cls=Command)
def size(as_json: Json = False) -> None:
    """Show the location, size and size limit of the cache.

    WEFT_CACHE_DIR moves it, WEFT_CACHE_LIMIT=10GiB raises the limit; the least recently used entries are evicted first.

    Examples:

        weft cache size

        WEFT_CACHE_LIMIT=500MiB weft cache size --json
    """
    store = default_cache()
    found = store.entries()
    kinds = {name: [e for e in found if e.kind == kind] for kind, name in KINDS.items()}
    total = sum(e.nbytes for e in found)
    if as_json:
        facts = {name: {"count": len(some), "bytes": sum(e.nbytes for e in some)} for name, some in kinds.items()}
        print_json({"folder": str(store.folder), "bytes": total, "limit_bytes": store.limit, **facts})
        return
    out.print(f"{store.folder}: {human_bytes(total)} of at most {human_bytes(store.limit)}", markup=False)
    for name, some in kinds.items():
        out.print(f"  {len(some):>6} {name:<8} {human_bytes(sum(e.nbytes for e in some))}")


@cache_app.command("clear", cls=Command)
def clear(
    older_than: Annotated[
        float, typer.Option("--older-than", metavar="DAYS", min=0, help="Only entries not used for DAYS days.")
    ] = 0.0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Empty the cache; models are compiled again when they are needed.

    Examples:

        weft cache clear

        weft cache clear --older-than 30
    """
    store = default_cache()
    unused = [e for e in store.entries() if not older_than or time.time() - e.used > older_than * DAY]
    freed = store.remove(unused)
    if as_json:
        print_json({"folder": str(store.folder), "removed": len(unused), "bytes": freed})
    elif not quiet:
        out.print(f"removed {len(unused)} files, {human_bytes(freed)}, from {store.folder}", markup=False)


def _facts(entry: Entry) -> dict[str, object]:
    return {
        "key": entry.key,
        "kind": entry.kind,
        "bytes": entry.nbytes,
        "used": entry.used,
        "about": about(entry),
        "path": str(entry.path),
    }
