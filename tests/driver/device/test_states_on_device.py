"""States of models on devices: they are in the device's memory, across calls, and compute what those of the processor do."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.codegen.c.networks import OTHERS
from tests.decoders import growing_decoder
from tests.driver.device.test_models_on_device import each_target, inputs_of
from tests.runtime.devices.fake_driver import FakeDriver
from tests.support.devices import needs_opencl

import weft
from weft.runtime.model_state import State
from weft.support.errors import DeviceError, InputError

PAIRS = {"past_*": "present_*"}
ROOM = 12
PROMPT = [3, 1, 4]


def decoder(target: str, **more: Any) -> weft.Model:
    """Returns a decoder of one layer whose cache is a state."""
    made = growing_decoder(layers=1).SerializeToString()
    return weft.compile(made, target=target, state=PAIRS, capacity={"past_*": ROOM}, **more)


def check_tokens(here: weft.Model, there: weft.Model, mine: State, other: State, count: int) -> None:
    """Fails unless both models make the same of a prompt and the tokens after it."""
    tokens = PROMPT
    for _ in range(count):
        (wanted,), (made,) = (m.run([np.array([tokens])], state=s) for m, s in ((here, mine), (there, other)))
        np.testing.assert_allclose(made, wanted, rtol=2e-5, atol=2e-5)
        tokens = [int(wanted.argmax())]
    for name in mine:
        np.testing.assert_allclose(other[name], mine[name], rtol=2e-5, atol=2e-5)


def count_copies(model: weft.Model, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Returns how often a model's device copies from now on, and how many bytes, by the name of the method."""
    assert model._device is not None
    device, counted = model._device.device, Counter[str]()

    def watch(name: str) -> None:
        copy = getattr(device, name)

        def counting(*given: Any) -> None:
            counted[name] += 1
            counted[f"bytes of {name}"] += given[-1]
            copy(*given)

        monkeypatch.setattr(device, name, counting)

    for name in ("write", "read", "move"):
        watch(name)
    return counted


@each_target
def test_a_cache_is_written_in_place_and_never_copied(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = decoder("cpu"), decoder(target)
    mine, other = here.new_state(), there.new_state()
    check_tokens(here, there, mine, other, 2)
    copied = count_copies(there, monkeypatch)
    ids = np.array([[5]])
    (logits,) = there.run([ids], state=other)
    assert copied["write"] == 1
    assert copied["bytes of write"] == ids.nbytes
    checks = copied["read"] - 1  # the values of checks of indices, one element each
    assert copied["bytes of read"] <= logits.nbytes + 8 * checks
    assert checks <= 4
    assert copied["move"] == 0


@each_target
def test_hidden_states(target: str) -> None:
    model, pairs = OTHERS["lstm"](), {"h": "h_next", "c": "c_next"}
    here, there = (weft.compile(model, target=t, state=pairs) for t in ("cpu", target))
    mine, other = here.new_state(batch=3), there.new_state(batch=3)
    given = inputs_of(here)
    for _ in range(3):
        for made, wanted in zip(there.run(given, state=other), here.run(given, state=mine), strict=True):
            np.testing.assert_allclose(made, wanted, rtol=2e-5, atol=2e-5)
    for name in mine:
        np.testing.assert_allclose(other[name], mine[name], rtol=2e-5, atol=2e-5)


@each_target
def test_values_are_read_set_copied_and_kept_in_files(target: str, tmp_path: Path) -> None:
    here, there = decoder("cpu"), decoder(target)
    mine, other = here.new_state(), there.new_state()
    assert not other["past_k0"].size
    check_tokens(here, there, mine, other, 2)
    branch = other.copy()
    other.reset()
    assert other.length("past_k0") == 0
    assert branch.length("past_k0") == len(PROMPT) + 1
    other.save(tmp_path / "empty.state")
    branch.save(tmp_path / "chat.state")
    check_tokens(here, there, here.load_state(tmp_path / "chat.state"), branch, 2)  # a file is for any target
    check_tokens(here, there, mine, there.load_state(tmp_path / "chat.state"), 2)
    with pytest.raises(InputError, match="it is full"):
        there.run([np.zeros((1, ROOM), np.int64)], state=branch)


@each_target
def test_a_saved_model_has_its_states(target: str, tmp_path: Path) -> None:
    here = decoder("cpu")
    decoder(target).save(tmp_path / "decoder.weft")
    loaded = weft.load(tmp_path / "decoder.weft")
    check_tokens(here, loaded, here.new_state(), loaded.new_state(), 3)


def test_states_with_cuda(driver: FakeDriver) -> None:
    here, there = decoder("cpu"), decoder("cuda", cache=False)
    other = there.new_state()
    check_tokens(here, there, here.new_state(), other, 3)
    copy = other.copy()
    del there, other
    assert copy["past_v0"].any()  # a state keeps the device
    del copy
    assert set(driver.live().values()) == {0}


@needs_opencl
def test_what_a_device_refuses_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    model = decoder("opencl")
    state = model.new_state()

    def refuses(*_: object) -> None:
        raise DeviceError("the device is gone", hint="look for it")

    assert model._device is not None
    monkeypatch.setattr(model._device.device, "write", refuses)
    with pytest.raises(DeviceError, match="the device is gone"):
        state["past_k0"] = np.zeros((1, 2, 3, 16), np.float32)
    monkeypatch.setattr(model._device.device, "alloc", refuses)
    with pytest.raises(DeviceError, match="the device is gone"):
        model.new_state()
    with pytest.raises(DeviceError, match="the device is gone"):
        state.copy()
