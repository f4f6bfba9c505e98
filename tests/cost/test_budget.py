"""How much code lowering may make is a part of what a core keeps decoded."""

from __future__ import annotations

from tests.replay.machines import MACHINES

from weft.cost.budget import CodeBudget, code_budget


def test_budgets_of_the_cores_that_they_were_fitted_on() -> None:
    for machine in MACHINES.values():
        assert code_budget(machine) == CodeBudget(2500, 2600, 64, 1200, 64)


def test_a_smaller_cache_of_decoded_instructions_allows_less_code() -> None:
    small = code_budget(MACHINES["avx2"].having(decoded_instructions=1500))
    assert small == CodeBudget(937, 975, 24, 450, 24)
