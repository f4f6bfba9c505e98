"""The next seconds go to the task from which most is expected."""

from __future__ import annotations

from weft.tune.allot import Progress, next_task


def test_tasks_that_nobody_looked_at_come_by_their_share() -> None:
    tasks = [Progress(1.0, []), Progress(3.0, []), Progress(2.0, [])]
    order = []
    for _ in tasks:
        n = next_task(tasks)
        assert n is not None
        order.append(n)
        tasks[n].slices += [0.0, 0.0]
    assert order == [1, 2, 0]


def test_a_task_that_wins_goes_on() -> None:
    winning, losing = Progress(1.0, [0.0, 0.3]), Progress(1.0, [0.0, 0.0])
    assert next_task([losing, winning]) == 1


def test_expectations_fade() -> None:
    task = Progress(1.0, [])
    expected = []
    for won in (0.2, 0.1, 0.0, 0.0):
        expected.append(task.expected)
        task.slices.append(won)
    assert expected == sorted(expected, reverse=True)
    assert task.expected > 0


def test_nothing_is_left() -> None:
    assert next_task([Progress(1.0, [], is_done=True)]) is None
    assert next_task([]) is None
