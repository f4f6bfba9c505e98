"""Texts that models of the package transformers write by `torch.compile`, with caches of keys and values."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

torch = pytest.importorskip("torch")
if find_spec("transformers") is None:  # which takes seconds to import, and is needed by slow tests alone
    pytest.skip("the package transformers is not installed", allow_module_level=True)

from tests.frontends.torch.architectures import WRITERS, through_generate  # noqa: E402


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WRITERS)
def test_tokens_are_those_of_pytorch(name: str) -> None:
    assert through_generate(name) == "agrees"
