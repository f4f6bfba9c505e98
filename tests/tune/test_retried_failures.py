"""A resumed search tries candidates again whose failure may have been the machine's, once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.tune.measure.test_trusted_candidates import RUNNING_SUM
from tests.tune.templates import share_or_unroll

from weft.loop import parse_program
from weft.records import Measurement
from weft.targets import host
from weft.tune.strategies import strategy
from weft.tune.task_tuner import TaskTuner
from weft.tune.tasks import task_of_template

FAILED, OTHER = ("kind: Choose(value='parallel')\n", "kind: Choose(value='unroll')\n")


@pytest.mark.parametrize(
    ("failures", "is_open"),
    [
        (("timeout",), True),
        (("crash",), True),
        (("memory",), True),
        (("timeout", "crash"), False),
        (("wrong",), False),
        (("plan",), False),
    ],
)
def test_failures_of_the_machine_are_tried_again(failures: tuple[str, ...], is_open: bool) -> None:
    task = task_of_template(share_or_unroll, parse_program(RUNNING_SUM), host())
    known = [
        Measurement("", "", "", str(task.plan), 2.0, time=1),
        Measurement("", "", "", OTHER, 1.0, time=1),
        *[Measurement("", "", "", FAILED, None, kind, time=2.0 + n) for n, kind in enumerate(failures)],
    ]
    with ThreadPoolExecutor(1) as executor:
        tuner = TaskTuner(task, strategy("random"), executor, executor, known=known)
        proposed = [str(tuner.space.open_plan(p)) for p in tuner.explorer.propose(8, tuner.history)]
    assert OTHER not in proposed
    assert (FAILED in proposed) == is_open
