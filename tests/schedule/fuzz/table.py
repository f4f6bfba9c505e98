"""What a campaign has tried, as a table, and what it falls short of."""

from __future__ import annotations

from tests.schedule.fuzz.cases import Tally
from tests.schedule.fuzz.steps import STEPS

ACCEPTED, SHARE = 0.01, 0.4
"""Every primitive is to be accepted in one of a hundred cases, and two steps of five, all in all."""


def table(t: Tally) -> str:
    """A row for each primitive, and the sum."""
    lines = [f"{'primitive':24}{'tried':>8}{'accepted':>10}{'refused':>9}{'errors':>8}{'share':>7}"]
    for name in sorted(STEPS):
        lines.append(_row(name, t.tried[name], t.accepted[name], t.refused[name], t.broken[name]))
    sums = [c.total() for c in (t.tried, t.accepted, t.refused, t.broken)]
    return "\n".join([*lines, _row("all", *sums)])


def _row(name: str, tried: int, accepted: int, refused: int, broken: int) -> str:
    share = f"{accepted / tried:.0%}" if tried else "-"
    return f"{name:24}{tried:8}{accepted:10}{refused:9}{broken:8}{share:>7}"


def shortcomings(t: Tally, cases: int) -> list[str]:
    """What *cases* should have shown, and have not."""
    wanted = int(cases * ACCEPTED)
    found = [f"{n} was accepted {t.accepted[n]} times, not {wanted}" for n in sorted(STEPS) if t.accepted[n] < wanted]
    if t.accepted.total() < SHARE * t.tried.total():
        found.append(f"{t.accepted.total()} of {t.tried.total()} steps were accepted, not {SHARE:.0%}")
    return found
