"""`flex_attention` of `torch.compile`, whose scores functions of the user's change and mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.nn.attention.flex_attention import create_block_mask, flex_attention  # noqa: E402

SLOPES = torch.tensor([0.5, 0.25, 0.1, 0.0])
DOCUMENTS = torch.arange(128) // 50
TABLE = torch.arange(12.0).view(4, 3)

Score = Callable[..., Any]

FUNCTIONS: dict[str, tuple[Score | None, Score | None]] = {
    "plain": (None, None),
    "causal": (None, lambda b, h, i, j: i >= j),
    "documents": (None, lambda b, h, i, j: (DOCUMENTS[i] == DOCUMENTS[j]) & (i >= j)),
    "biases": (lambda s, b, h, i, j: torch.tanh(s) + SLOPES[h] * (i - j), None),
    "both": (lambda s, b, h, i, j: torch.where(h % 2 == 0, s, s * TABLE[h, i % 3]), lambda b, h, i, j: i - j < 7),
    "queries that see no key": (None, lambda b, h, i, j: (i >= j) & (i > 3)),
}


@pytest.fixture(autouse=True)
def _fresh() -> Any:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def both(score: Score | None, mask: Score | None, heads: int = 4) -> None:
    """Checks that Weft and PyTorch agree."""
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 4, 128, 16), torch.randn(2, heads, 128, 16), torch.randn(2, heads, 128, 16)
    blocks = None if mask is None else create_block_mask(mask, None, None, 128, 128, device="cpu")

    def attended(q: Any, k: Any, v: Any) -> Any:
        return flex_attention(q, k, v, score_mod=score, block_mask=blocks, enable_gqa=heads < 4)

    with torch.no_grad():
        made = torch.compile(attended, backend="weft", options={"fallback": False})(q, k, v)
        torch._dynamo.reset()
        wanted = torch.compile(attended, backend="aot_eager")(q, k, v)
    torch.testing.assert_close(made, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_scores(name: str) -> None:
    both(*FUNCTIONS[name])


def test_heads_that_others_share() -> None:
    both(None, lambda b, h, i, j: i >= j, heads=2)


def test_functions_that_compute_more_than_elements_are_refused() -> None:
    message = r"aten.sum.default in a function of scores is not supported"
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=message):
        both(lambda s, b, h, i, j: s + TABLE.sum(), None)
