"""Networks of MXNet that are refused: what the errors say; and damaged files."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.frontends.mxnet.saved import chain, params, save
from tests.support.damaged_files import damaged

import weft
from weft.frontends.dispatch import frontend_of, to_graph

FOLDER = Path(__file__).parent / "networks"


def said(given: Any, kind: type[weft.ModelError] = weft.ModelError) -> str:
    with pytest.raises(kind) as caught:
        to_graph(given)
    return str(caught.value)


def test_all_unknown_operators_are_named(tmp_path: Path) -> None:
    symbol = chain(("Mine", {}, ()), ("Flatten", {}, ()), ("Yours", {}, ()), ("Mine", {}, ()))
    assert said(save(tmp_path, symbol, {}), weft.UnsupportedOperators) == (
        "the model uses 2 operators that Weft does not have:\n"
        "  Mine, 2 nodes: n1, n4\n"
        "  Yours, 1 node: n3\n"
        "  hint: build the network from other operators"
    )


def test_a_symbol_does_not_say_the_shape_of_its_input(tmp_path: Path) -> None:
    assert said(save(tmp_path, chain(("Flatten", {}, ())), {})) == (
        "the model does not say how many dimensions the input 'data' has\n"
        '  hint: give its shape: shapes={"data": (1, 3, 224, 224)}'
    )


def test_files_that_are_not_both_there(tmp_path: Path) -> None:
    path = save(tmp_path, chain(("Flatten", {}, ())), {})
    weights = tmp_path / "net-0000.params"
    assert (
        said(weights) == f"{weights} has a network's weights alone\n  hint: give its symbol.json, and these beside it"
    )
    assert said(path.read_bytes()) == (
        "an MXNet network is two files, of which bytes are one\n"
        "  hint: give the path of its symbol.json, or a pair of paths"
    )
    weights.rename(tmp_path / "net-0001.params").with_name("net-0002.params").write_bytes(b"")
    assert said(path) == (
        f"of files net-0000.params beside {path}, for its weights, there are several: net-0001.params, net-0002.params\n"
        '  hint: give both: weft.compile(("net-symbol.json", "FILE.params"))'
    )


def test_messages(tmp_path: Path) -> None:
    def of(attributes: dict[str, str], op: str = "Pooling") -> str:
        path = save(tmp_path, chain((op, attributes, ())), {})
        with pytest.raises(weft.ModelError) as caught:
            to_graph(path, {"data": (1, 2, 4, 4)})
        return str(caught.value)

    assert of({"kernel": "three"}) == (
        "Pooling n1: its attribute kernel is 'three', not a list of integers\n  hint: save the network again"
    )
    assert of({"kernel": "(2, 2)", "pool_type": "median"}) == (
        "Pooling n1: its pool_type 'median' is not supported\n  hint: use max, avg, sum or lp"
    )
    sparse = bytearray(params({"w": np.zeros(1, np.float32)}))
    sparse[28] = 1
    path = save(tmp_path, chain(("Flatten", {}, ())), {})
    (tmp_path / "net-0000.params").write_bytes(sparse)
    assert "has a sparse array\n  hint: convert it: array.tostype('default')" in said(path)
    sizes = bytearray(params({"w": np.zeros((0, 1, 1), np.float32)}))
    sizes[44:60] = struct.pack("<qq", 1 << 40, 1 << 40)
    (tmp_path / "net-0000.params").write_bytes(sizes)
    assert said(path).endswith("net-0000.params is damaged\n  hint: download it again")


MARKS = [b"-", b"99999", b"{", b"}", b"[", b"]", b'"', b"(", b"\xff", b"null", b"True", b"0", b"\0\0\0\0", b"1e999"]


def _damaged_networks(folder: Path, seeds: range) -> int:
    """Imports damaged copies of networks, one a seed; returns how many were refused. Only Weft's errors are let through."""
    names, refused = ("attention", "classic", "cnn", "decoder", "../quantized/sums"), list[weft.WeftError]()
    kept = {n: ((FOLDER / f"{n}-symbol.json").read_bytes(), (FOLDER / f"{n}-0000.params").read_bytes()) for n in names}
    shapes = {n: np.load(FOLDER / f"{n}.npz")["x"].shape for n in names}
    frontend = frontend_of(FOLDER / "cnn-symbol.json")
    path = folder / "n-symbol.json"
    for seed in seeds:
        random_ = random.Random(seed)
        name = random_.choice(names)
        symbol, weights = kept[name]
        if random_.random() < 0.6:
            symbol = damaged(random_, symbol, MARKS)
        else:
            weights = damaged(random_, weights, MARKS)
        for file, data in ((path, symbol), (folder / "n-0000.params", weights)):
            file.unlink(missing_ok=True)
            file.write_bytes(data)
        try:
            frontend.to_graph(path, {"data": shapes[name]})
        except weft.WeftError as error:
            refused.append(error)
    assert all(error.hint for error in refused)
    return len(refused)


def test_damaged_networks_end_in_errors_of_weft(tmp_path: Path) -> None:
    assert _damaged_networks(tmp_path, range(200)) > 100


@pytest.mark.slow
def test_many_damaged_networks(tmp_path: Path) -> None:
    assert _damaged_networks(tmp_path, range(1000, 11_000)) > 5000
