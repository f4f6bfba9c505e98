"""`weft records`, and commands that compile by tuning records."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.commands import Cli
from tests.driver.tuned import record_of, tune, tune_graph
from tests.models import mlp
from tests.records.entries import HERE, MATMUL, THERE, matmul, measured, record

import weft
from weft.driver.hardware import hardware_of
from weft.records import Store


@pytest.fixture
def db(cli: Cli) -> Path:
    """Records of two workloads, made yesterday."""
    path, then = Path("tune.db"), time.time() - 86400
    with Store(path) as store:
        store.add(HERE, MATMUL, record(0.5, time=then, origin="xgb"), record(2e-5, verified=False, baseline=None))
        store.add(record(0.25, matmul(1, 2, label="dense"), THERE, time=then), measured(0.5), measured(0.25, time=then))
    return path


def test_listing(cli: Cli, db: Path) -> None:
    lines = cli("records", "ls", db).out.splitlines()
    assert lines[0].split() == ["key", "takes", "x", "checked", "cores", "measured", "by", "what"]
    rows = sorted([re.split(" {2,}", line.strip())[1:] for line in lines[2:]])
    assert rows[0] == ["20.0 us", "-", "no", "2", rows[0][4], "-", "matmul"]
    assert rows[1:] == [
        ["250 ms", "4.00", "yes", "?", "1 day ago", "-", matmul(1, 2).digest],
        ["500 ms", "2.00", "yes", "2", "1 day ago", "xgb", "matmul"],
    ]


def test_listing_as_json(cli: Cli, db: Path) -> None:
    found = json.loads(cli("records", "ls", db, "--json").out)
    (mine,) = [f for f in found if f["origin"] == "xgb"]
    assert {
        k: mine[k] for k in ("what", "seconds", "baseline", "verified", "samples", "threads", "target", "weft")
    } == {
        "what": "matmul",
        "seconds": 0.5,
        "baseline": 1.0,
        "verified": True,
        "samples": 20,
        "threads": 1,
        "target": "cpu",
        "weft": "0.1.0",
    }
    assert mine["machine"] == {"name": "Zen 4", "cores": 2}


def test_an_empty_database(cli: Cli) -> None:
    with Store("tune.db") as store:
        store.add(measured(0.5))
    assert cli("records", "ls", "tune.db").out == "tune.db holds no records, and 1 measurements\n"
    assert cli("records", "ls", "tune.db", "--json").out == "[]\n"


def test_showing_a_record(cli: Cli, db: Path) -> None:
    (key,) = [f["key"] for f in json.loads(cli("records", "ls", db, "--json").out) if f["origin"] == "xgb"]
    assert cli("records", "show", db, key[:12]).out.splitlines() == [
        f"record   {key}",
        "for      matmul",
        "on       Zen 4, 2 cores, target cpu, threads 1",
        "takes    500 ms (450 ms to 550 ms), the incumbent 1.00 s; results checked",
        "made by  xgb, Weft 0.1.0, 1 day ago",
        "",
        "matmul: Rule(name='tiled')",
    ]
    facts = json.loads(cli("records", "show", db, key, "--json").out)
    assert (facts["key"], facts["plan"], facts["trace"]) == (key, "matmul: Rule(name='tiled')\n", "[]")


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("x", "there is no record 'x' in tune.db\n  hint: `weft records ls tune.db` lists them"),
        ("", "3 records of tune.db begin with ''\n  hint: give more of it; `weft records ls tune.db` lists them"),
    ],
)
def test_a_key_that_is_none(cli: Cli, db: Path, key: str, told: str) -> None:
    done = cli("records", "show", db, key)
    assert (done.code, done.out, done.err) == (1, "", f"error: {told}\n")


def test_merging_exporting_and_importing(cli: Cli, db: Path) -> None:
    with Store("other.db") as store:
        store.add(HERE, replace(record(0.125), origin="random"))
    assert cli("records", "merge", "all.db", db, "other.db").out == "8 entries were new to all.db\n"
    assert json.loads(cli("records", "merge", "all.db", "other.db", db, "--json").out) == {"db": "all.db", "added": 0}
    assert cli("records", "export", "all.db", "-o", "all.jsonl").out == "wrote all.jsonl: 8 entries\n"
    text = Path("all.jsonl").read_text()
    assert [json.loads(line).get("table") for line in text.splitlines()][:3] == [None, "hardware", "workload"]
    assert cli("records", "import", "again.db", "all.jsonl", "-q").out == ""
    assert json.loads(cli("records", "export", "again.db", "-o", "again.jsonl", "--json").out)["entries"] == 8
    assert Path("again.jsonl").read_text() == text


def test_exporting_a_pack(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tune(Path("tune.db"), mlp(), origin="tests")
    path, count = f"packs/{hardware_of(made.target).digest}.jsonl", len(made.kernels)
    assert cli("records", "export", "tune.db", "--pack", "-o", "packs").out == f"wrote {path}: {count} records\n"
    assert json.loads(cli("records", "export", "tune.db", "--pack", "-o", "packs", "--json").out) == {
        "packs": {path: count}
    }
    monkeypatch.setenv("WEFT_PACK_DIR", "packs")
    lines = cli("inspect", "mlp.onnx").out.splitlines()
    assert f"  records  {count} of {count} kernels ({count} from the pack)" in lines
    told = cli("inspect", "mlp.onnx", "--plan", "1").out.splitlines()[1]
    assert told == "# from the pack that comes with Weft: 10.0 us instead of 20.0 us, measured on 2027-01-15, by tests"
    off = cli("inspect", "mlp.onnx", "--without", "pretuned").out
    assert "  records  " not in off


def test_a_pack_of_nothing(cli: Cli) -> None:
    tune(Path("tune.db"), mlp(), baseline=1.001e-5)
    done = cli("records", "export", "tune.db", "--pack", "-o", "packs")
    assert (done.code, done.out, Path("packs").exists()) == (1, "", False)
    assert done.err == (
        "error: tune.db has no record that is faster than its incumbent beyond noise\n"
        "  hint: a pack holds verified records whose whole interval is 1% or more below the incumbent's time; tune for longer,"
        " with --minutes\n"
    )


def test_pruning(cli: Cli, db: Path) -> None:
    assert cli("records", "prune", db, "--keep", "1").out == "removed 1 records and 0 measurements from tune.db\n"
    removed = json.loads(cli("records", "prune", db, "--older-than", "0.5", "--json").out)["removed"]
    assert removed == {"hardware": 1, "workload": 1, "record": 2, "measurement": 2}
    assert cli("records", "prune", db, "--other-versions", "-q").out == ""
    done = cli("records", "prune", db)
    assert done.code == 2
    assert "give --keep, --older-than or --other-versions" in done.err


def test_salvaging(cli: Cli, db: Path) -> None:
    assert cli("records", "salvage", db, "new.db").out == "wrote new.db: 3 records and 2 measurements\n"
    data = db.read_bytes()
    db.write_bytes(data.replace(b"'tiled'", b"'wiled'", 1))
    done = cli("records", "ls", db)
    assert (done.code, done.err.splitlines()[1]) == (
        1,
        "  hint: copy what can still be read: weft records salvage tune.db NEW.db",
    )
    out = cli("records", "salvage", db, "newer.db").out
    assert out.endswith("; there were some that could not be read\n")
    facts = json.loads(cli("records", "salvage", db, "newest.db", "--json").out)
    assert (facts["file"], facts["unfit"], facts["complete"]) == ("newest.db", 1, True)


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["ls", "no.db"], "there are no tuning records at no.db"),
        (["prune", "no.db", "--keep", "1"], "there are no tuning records at no.db"),
        (["merge", "new.db", "no.db"], "there are no tuning records at no.db"),
        (["merge", "new.db", "mlp.onnx"], "mlp.onnx is no database of tuning records"),
        (["ls", "mlp.onnx"], "mlp.onnx is no database of tuning records"),
        (["import", "new.db", "x.npy"], "line 1 of x.npy is none of tuning records: "),
        (
            ["import", "new.db", "no.jsonl"],
            "no.jsonl can't be read: No such file or directory\n  hint: give another path",
        ),
        (["export", "tune.db", "-o", "tune.db"], "tune.db is the database itself\n  hint: choose another name"),
        (["export", "tune.db", "-o", "no/f"], "no/f can't be written: there is no folder no"),
        (["salvage", "tune.db", "x.npy"], "x.npy is there already"),
    ],
)
def test_what_can_not_be_done(cli: Cli, db: Path, args: list[str], told: str) -> None:
    before = {p.name: p.read_bytes() for p in Path().iterdir() if p.name != "new.db"}
    done = cli("records", *args)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"error: {told}")
    assert {p.name: p.read_bytes() for p in Path().iterdir() if p.name != "new.db"} == before


def test_commands_that_compile_follow_records(cli: Cli) -> None:
    db = Path("tune.db")
    rules = tune(db, mlp(), origin="tests")
    assert cli("run", "mlp.onnx", "--random", "--records", db).code == 0
    assert cli("compile", "mlp.onnx", "-o", "m.weft", "--records", db).code == 0
    assert weft.load("m.weft").package.notes["records"] == "{0} of {0} kernels".format(len(rules.kernels))
    assert ", records tune.db" in cli("cache", "ls").out
    head, told, *lines = cli("inspect", "mlp.onnx", "--plan", "1", "--records", db).out.splitlines()
    assert head.startswith("# kernel 1: matmul_packed_relu")
    with Store(db, read_only=True) as store:
        (mine,) = [r for r in store.records() if r.workload == next(iter(rules.requests.values())).workload]
    assert told == (
        f"# from the tuning record {mine.digest[:10]}: 10.0 us instead of 20.0 us, measured on 2027-01-15, by tests"
    )
    assert "\n".join(lines) == mine.plan.strip()
    facts = json.loads(cli("inspect", "mlp.onnx", "--plan", "1", "--records", db, "--json").out)["plan"]
    assert facts["record"] == mine.digest
    assert [f"{d['subject']}: {d['chosen']}" for d in facts["decisions"]] == lines


def test_the_plan_of_a_graph_from_a_record(cli: Cli) -> None:
    plan = str(weft.build(mlp(), "cpu").graph_plan)
    tune_graph(Path("tune.db"), mlp(), plan)
    lines = cli("inspect", "mlp.onnx", "--plan", "graph", "--records", "tune.db").out.splitlines()
    assert lines[1].endswith(": 10.0 us instead of 20.0 us, measured on 2027-01-15")
    assert lines[2:] == plan.splitlines()


@pytest.mark.usefixtures("not_alone")
def test_bench_follows_records(cli: Cli, mlp_weft: Path) -> None:
    tune(Path("tune.db"), mlp())
    assert cli("bench", "mlp.onnx", "--seconds", "0.1", "--records", "tune.db").code == 0
    for asked in (["mlp.onnx"], ["--ablate", "mlp.onnx"], ["--roofline", "mlp.onnx"]):
        done = cli("bench", *asked, "--seconds", "0.1", "--records", "no.db")
        assert (done.code, done.err.splitlines()[0]) == (1, "error: there are no tuning records at no.db")
    done = cli("bench", mlp_weft, "--records", "tune.db")
    assert done.err == (
        f"error: {mlp_weft} is compiled already: --records has no effect on it\n"
        "  hint: give it to `weft compile`, with the model that it was made from\n"
    )


@pytest.mark.filterwarnings("always::weft.driver.recorded.recorded_plans.RecordWarning")
def test_a_record_that_no_longer_applies_is_one_line(cli: Cli) -> None:
    made = weft.build(mlp(widths=(24, 10)), "cpu")
    tune(Path("tune.db"), mlp(widths=(24, 10)), lambda request, target: "dense: Magic()\n")
    done = cli("run", "dense.onnx", "--random", "--records", "tune.db", "-q")
    assert done.code == 0
    assert len(done.err.splitlines()) == 1
    (name,) = [k.name for k in made.kernels.values()]
    assert done.err.startswith(f"warning: the tuning record of kernel {name} no longer applies and is left out: line 1")
    assert record_of(MATMUL, made.target, "").verified
