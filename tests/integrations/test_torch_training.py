"""Networks that `torch.compile` trains through Weft, and calls in other modes of PyTorch's."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")

nn, F = torch.nn, torch.nn.functional
STRICT = {"fallback": False, "threads": 1}


class Small(torch.nn.Module):  # type: ignore[misc,name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.linear = nn.Linear(8, 5)

    def forward(self, x: Any) -> Any:
        return self.linear(F.avg_pool2d(F.relu(self.norm(self.conv(x))), 2).mean((2, 3)))


@pytest.mark.parametrize("optimizer", ["Adam", pytest.param("SGD", marks=pytest.mark.slow)])
def test_steps_are_those_of_pytorch(optimizer: str) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    trained, wanted = (m := Small().train()), copy.deepcopy(m)
    fast = torch.compile(trained, backend="weft", options=STRICT)
    steps = [getattr(torch.optim, optimizer)(net.parameters(), lr=0.01) for net in (trained, wanted)]
    for _ in range(3):
        x, target = torch.randn(4, 3, 6, 6), torch.randint(0, 5, (4,))
        for net, step in zip((fast, wanted), steps, strict=True):
            step.zero_grad()
            F.cross_entropy(net(x), target).backward()
            step.step()
    for (name, a), b in zip(trained.state_dict().items(), wanted.state_dict().values(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4, msg=lambda said, name=name: f"{name}: {said}")


def test_fake_tensors_have_shapes_alone() -> None:
    torch._dynamo.reset()
    with torch._subclasses.fake_tensor.FakeTensorMode():
        for is_training in (True, False):
            model = nn.Linear(4, 3).requires_grad_(is_training)
            made = torch.compile(model, backend="weft", options=STRICT)(torch.randn(2, 4))
            assert isinstance(made, torch._subclasses.FakeTensor)
            assert made.shape == (2, 3)


def test_modes() -> None:
    x = torch.randn(3)
    for mode, said in (("max-autotune", ["the backend has one mode: 'max-autotune' changes nothing"]), ("default", [])):
        torch._dynamo.reset()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            torch.testing.assert_close(torch.compile(torch.sin, backend="weft", mode=mode)(x), torch.sin(x))
        assert [str(w.message) for w in told if "mode" in str(w.message)] == said
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="there is no mode 'fastest'"):
        torch.compile(torch.cos, backend="weft", mode="fastest")(x)


def test_a_layer_of_an_encoder() -> None:
    torch._dynamo.reset()
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    with torch.no_grad():
        x = torch.randn(2, 5, 8)
        torch.testing.assert_close(torch.compile(layer, backend="weft", options=STRICT)(x), layer(x))
