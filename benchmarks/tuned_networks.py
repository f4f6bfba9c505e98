"""What tuning is worth: the networks of the README's table, and four of our own, tuned against what the rules choose.

    ../.venv/bin/python tuned_networks.py [--minutes 5] [--networks resnet18,unet] [--json FILE] [--records DB]
    ../.venv/bin/python tuned_networks.py --without-core-table

Each network is tuned for some minutes, or goes on from the records of before. Then the tuned model and the untuned one, both
without the pack, are called in turns for --seconds, and each alone for as long: "x" is untuned time / tuned time with its 95%
interval over several repeats, of processor time where there is one thread. A network for which nothing faster was found
has the same code twice, and counts as 1; what is measured of it shows the noise. Limits are those of the roofline of one core:
the part of their time that the kernels could not do without. Exits with 1 where a network is slower by more
than 1% beyond noise.

--without-core-table takes this processor for one of which nothing is known: neither a row of a table nor anything measured. The
rules with what is known of it, with guesses, and with guesses but tuned, take turns. "lost" is how much slower guesses make the
network, "won back" the share of that (of its logarithm) that tuning wins back.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from guessed_facts import guessed_facts
from own_networks import OWN, write_own
from paired_runs import paired_times

import weft
from weft.cli.tune.limit_words import part_of_limit
from weft.driver.cache.code_cache import default_cache
from weft.runtime.model import Model
from weft.tune.tune_model import RULES
from weft.tune.tuning_session import Status

HERE = Path(__file__).resolve().parent
README = ("resnet18", "mobilenet_v1", "dqn", "dcgan", "mlp", "lstm_lm", "bert_base", "gpt2_decode256")
LOSS = 0.01


def model_path(name: str, batch: int) -> Path:
    """Return the file of a network; those of the table have the batch that they were written with."""
    if name in OWN:
        return write_own(name, HERE / "cache" / "own", batch)
    path = HERE / "onnx" / f"{name}.onnx"
    if not path.exists():
        raise SystemExit(f"there is no {path}: `make bench-models` writes the networks of the table")
    return path


def compiled(path: Path, threads: int, records: Path | None = None) -> Model:
    """Return the model by the rules, and by *records* where they have plans."""
    options = replace(RULES, records=None if records is None else str(records))
    return Model(weft.build(str(path), "cpu", options, cache=default_cache()).package, threads=threads)


def tune(path: Path, records: Path, asked: argparse.Namespace) -> tuple[float, float] | None:
    """Tune a network, print what became of it, and return how near to the limits of the machine it was and is."""

    def watch(s: Status) -> None:
        if sys.stderr.isatty():
            print(f"\r{path.stem}: {s.trials} candidates, {s.seconds:.0f} s of {s.budget:.0f}", end="", file=sys.stderr)

    report = weft.tune(
        path, asked.minutes, records, tuner=asked.tuner, threads=asked.threads, seed=asked.seed, watch=watch
    )
    print(f"{path.stem}: {report.measured} candidates, {len(report.winners)} winners; {report.reason}", flush=True)
    return part_of_limit(report)


def tuned_row(name: str, asked: argparse.Namespace) -> dict[str, Any]:
    """Tune a network, and time it against the rules'."""
    path, records = model_path(name, asked.batch), asked.records
    part = tune(path, records, asked) if asked.minutes > 0 else None
    followed = compiled(path, asked.threads, records if records.exists() else None).package.notes["records"]
    make = [partial(compiled, path, asked.threads, records if followed != "none" else None)]
    times = paired_times([*make, partial(compiled, path, asked.threads)], asked.threads, asked.seconds)
    ratio, is_same = times.ratio(1), followed == "none"
    row = {
        "network": name,
        "followed": followed,
        "tuned_ms": 1e3 * times.seconds(0),
        "untuned_ms": 1e3 * times.seconds(1),
        "part_of_limit": part,
    }
    row |= {"same_code": is_same, "measured": ratio.middle, "ratio": 1.0 if is_same else ratio.middle}
    row |= {"low": ratio.low, "high": ratio.high, "ratio_alone": times.ratio_alone(1)}
    print(
        f"{name:<16} {row['untuned_ms']:9.3f} ms  x {ratio.middle:.3f} ({ratio.low:.3f} - {ratio.high:.3f})"
        f"  alone x {row['ratio_alone']:.3f}  {'the same code' if is_same else followed}"
        + ("" if part is None else f"; kernels at {part[0]:.0%} of their limits before, {part[1]:.0%} now"),
        flush=True,
    )
    return row


def guessed_row(name: str, asked: argparse.Namespace) -> dict[str, Any]:
    """Time the rules with facts, the rules with guesses, and what tuning makes of the latter."""
    path = model_path(name, asked.batch)
    records = asked.records.with_name(f"{asked.records.stem}-guessed.db")
    if asked.minutes > 0:
        with guessed_facts():
            tune(path, records, asked)

    def guessed(found: Path | None) -> Model:
        with guessed_facts():
            return compiled(path, asked.threads, found)

    make = [partial(compiled, path, asked.threads), partial(guessed, None)]
    make += [partial(guessed, records if records.exists() else None)]
    times = paired_times(make, asked.threads, asked.seconds)
    lost, is_same = times.ratio(1), guessed(records if records.exists() else None).package.notes["records"] == "none"
    left = lost if is_same else times.ratio(2)
    share = 1 - math.log(left.middle) / math.log(lost.middle) if lost.low > 1 else None
    row = {"network": name, "known_ms": 1e3 * times.seconds(0), "won_back": share}
    row |= {f"guessed_{k}": v for k, v in vars(lost).items()} | {f"tuned_{k}": v for k, v in vars(left).items()}
    print(
        f"{name:<16} {row['known_ms']:9.3f} ms  guesses x {lost.middle:.3f} ({lost.low:.3f} - {lost.high:.3f})"
        f"  tuned x {left.middle:.3f} ({left.low:.3f} - {left.high:.3f})"
        f"  won back {'-' if share is None else f'{share:.0%}'}",
        flush=True,
    )
    return row


def summary(rows: list[dict[str, Any]], is_guessed: bool) -> dict[str, Any]:
    """Print and return the geometric means."""
    if not is_guessed:
        mean = geometric_mean([r["ratio"] for r in rows])
        faster = sum(r["low"] > 1 and not r["same_code"] for r in rows)
        print(f"{'geometric mean':<16} x {mean:.3f}; {faster} of {len(rows)} networks are faster beyond noise")
        return {"ratio": mean, "faster": faster}
    lost = geometric_mean([r["guessed_middle"] for r in rows])
    left = geometric_mean([r["tuned_middle"] for r in rows])
    share = 1 - math.log(left) / math.log(lost) if lost > 1 else None
    told = "" if share is None else f"; {share:.0%} of the difference are won back"
    print(f"{'geometric mean':<16} guesses x {lost:.3f}, tuned x {left:.3f}{told}")
    return {"guessed": lost, "tuned": left, "won_back": share}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default=",".join([*README, *OWN]))
    parser.add_argument("--minutes", type=float, default=5.0, help="minutes of tuning each; 0 times what is recorded")
    parser.add_argument("--seconds", type=float, default=10.0, help="seconds of timing each, in turns and alone")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch", type=int, default=1, help="of our own networks")
    parser.add_argument("--tuner", default="sa-xgb")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--records", type=Path, default=HERE / "cache" / "tuned.db")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--without-core-table", action="store_true")
    asked = parser.parse_args()
    asked.records.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in asked.networks.split(","):
        rows.append(guessed_row(name, asked) if asked.without_core_table else tuned_row(name, asked))
        gc.collect()
        if asked.json:
            asked.json.write_text(json.dumps({"rows": rows}, indent=1))
    found = summary(rows, asked.without_core_table)
    if asked.json:
        asked.json.write_text(json.dumps({"rows": rows, "mean": found}, indent=1))
    return 0 if asked.without_core_table else int(any(r["high"] < 1 - LOSS and not r["same_code"] for r in rows))


if __name__ == "__main__":
    sys.exit(main())
