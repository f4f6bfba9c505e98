"""Entries of PyTorch's own database of operators and samples: none gives other numbers, and none fails without a name."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Final

import pytest

torch = pytest.importorskip("torch")
if find_spec("expecttest") is None:
    pytest.skip("the package expecttest, which PyTorch's database needs, is not installed", allow_module_level=True)

from tests.frontends.torch.opinfo import database, verdict_of  # noqa: E402

PARTS: Final = 16
"""Of each so many entries one is tried exported, and another through `torch.compile`."""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("how", "first"), [("export", 0), ("compile", PARTS // 2)])
def test_operators_pass_or_are_refused_by_name(how: str, first: int) -> None:
    entries: dict[str, Any] = database()
    found = {name: verdict_of(entries[name], 1, how) for name in list(entries)[first::PARTS]}
    assert {name: v for name, v in found.items() if v.kind in ("wrong", "crashed", "slow")} == {}
    passed = sum(v.kind in ("pass", "drawn") for v in found.values())
    assert passed >= 0.9 * len(found)
