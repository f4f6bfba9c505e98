"""Damaged and unsupported networks: the messages name the layer and the line, and say what to do."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import numpy as np
import pytest
from tests.frontends.darknet.networks import NETWORKS, image_of, write
from tests.support.damaged_files import damaged

import weft
from weft.frontends.dispatch import files_of, frontend_of, to_graph
from weft.support.errors import MissingFile

START = "[net]\nwidth=8\nheight=8\nchannels=3\n"
CONV = "[convolutional]\nfilters=2\nsize=1\n"
HEAD = struct.pack("<iiiq", 0, 2, 0, 0)
WEIGHTS = HEAD + np.arange(8, dtype=np.float32).tobytes()
"""Those of CONV."""


def network(folder: Path, text: str, weights: bytes = WEIGHTS) -> Path:
    (folder / "a.weights").write_bytes(weights)
    (folder / "a.cfg").write_text(text)
    return folder / "a.cfg"


def said(model: object) -> str:
    with pytest.raises(weft.ModelError) as told:
        to_graph(model)
    return str(told.value)


def test_all_unsupported_layers_are_told_at_once(tmp_path: Path) -> None:
    path = network(tmp_path, f"{START}[contrastive]\n[foo]\n{CONV}[contrastive]\n")
    assert said(path).split("\n  hint")[0] == (
        "the model uses 2 operators that Weft does not have:\n"
        "  [contrastive], 2 nodes: layer 0 (line 5), layer 3 (line 10)\n"
        "  [foo], 1 node: layer 1 (line 6)"
    )


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (
            CONV + "xnor=1",
            "[convolutional] layer 0, line 5: xnor=1 (line 8) is not supported\n  hint: train the network without it",
        ),
        (
            CONV + "stride=x",
            "[convolutional] layer 0, line 5: stride=x (line 8) should be an integer\n  hint: mend this line of the .cfg",
        ),
        (CONV + "stride=0", "stride=0 (line 8) should be 1 or more"),
        (CONV + "groups=2", "groups=2 (line 8) does not divide 3 channels and 2 filters"),
        (
            CONV + "activation=foo",
            "activation=foo (line 8) is not supported\n  hint: the activations are linear, logistic",
        ),
        ("[convolutional]\nfilters=99999999999\n", "filters=99999999999 (line 6) is too large; 2147483647 is the most"),
        (
            "[convolutional]\nfilters=2147483647\nsize=999\n",
            "ends within its biases: 2147483647 numbers are needed, and 8 are left",
        ),
        ("[convolutional]\nfilters=2\nsize=2\n", "ends within its weights: 24 numbers are needed, and 6 are left"),
        ("[dropout]\n", "has 8 numbers more than the network's layers take (0)"),
        (
            CONV + "[route]\nlayers=-1,-3\n",
            "[route] layer 1, line 8: layers=-1,-3 (line 9) names layer -2; 1 come before this one",
        ),
        (CONV + "[route]\n", "layers, which is absent, should name the layers to put together"),
        (CONV + "[maxpool]\nstride=2\n[route]\nlayers=0,1\n", "layers of other sizes can't be put together"),
        (CONV + "[yolo]\nmask=0\nclasses=1\n", "1 boxes of 6 numbers take 6 channels, not 2"),
        (CONV + "[reorg]\nstride=3\n", "stride=3 (line 9) does not divide"),
        (CONV + "[upsample]\nstride=-2\n", "stride=-2 (line 9) should be 1 or more"),
        ("[maxpool]\nstride", "a.cfg, line 6: this is neither a section nor an option of one: 'stride'"),
        ("[maxpool\n", "a.cfg, line 5: a section's name has no closing bracket: '[maxpool'"),
        ("", "the network has no layers after a section [net]"),
    ],
)
def test_refused(layers: str, message: str, tmp_path: Path) -> None:
    assert message in said(network(tmp_path, START + layers))


def test_files(tmp_path: Path) -> None:
    path = network(tmp_path, START + CONV)
    weights = tmp_path / "a.weights"
    assert files_of(path) == [path, weights]
    assert len(to_graph((path, weights)).nodes) == len(to_graph(str(path)).nodes) > 0
    assert "has a network's weights alone\n  hint: give its .cfg" in said(weights)
    assert "bytes are one" in said(path.read_bytes())
    weights.rename(tmp_path / "b.weights")
    assert "the folder has b.weights" in said(path)
    (tmp_path / "c.weights").write_bytes(WEIGHTS)
    with pytest.raises(
        MissingFile, match=r"no a\.weights beside .*the folder has b\.weights, c\.weights\n  hint: call it so"
    ):
        to_graph(path)


def test_shapes_and_old_versions(tmp_path: Path) -> None:
    old = struct.pack("<iiii", 0, 1, 0, 0) + WEIGHTS[len(HEAD) :]
    graph = to_graph(network(tmp_path, "; a comment\n" + START + CONV, old), {"data": (2, 3, 16, 12)})
    assert [v.static_shape for v in (*graph.inputs, *graph.outputs)] == [(2, 3, 16, 12), (2, 2, 16, 12)]
    assert (graph.metadata.producer_name, graph.output_names) == ("darknet", ["convolutional_0"])


def test_matrices_of_other_versions_are_transposed(tmp_path: Path) -> None:
    text, numbers = START + "[connected]\noutput=2\nactivation=linear\n", np.arange(2 + 192 * 2, dtype=np.float32)
    made = []
    for version, matrix in (((0, 2, 0), numbers[2:].reshape(192, 2).T), ((2000, 0, 0), numbers[2:])):
        head = struct.pack("<iii", *version) + bytes(8 if version[0] == 0 else 4)
        weights = head + numbers[:2].tobytes() + matrix.tobytes()
        graph = to_graph(network(tmp_path, text, weights))
        made.append(next(c.array for c in graph.constants() if c.static_shape == (192, 2)))
    assert np.array_equal(made[0], made[1])


MARKS = [b"-", b"99999", b"\n", b"[", b"]", b"=", b",", b"0", b"\xff", b"1e400", b"nan", b"#"]


def _damage(random_: random.Random, data: bytes) -> bytes:
    return damaged(random_, data, MARKS) or b"[net]"


def _damaged_files(folder: Path, seeds: range) -> int:
    """Imports damaged copies of networks, one a seed; returns how many were refused. Only Weft's errors are let through."""
    kept, refused = {}, 0
    for name, sections in NETWORKS.items():
        path, _ = write(sections, folder, image_of(sections))
        kept[name] = path.read_bytes(), path.with_suffix(".weights").read_bytes()
    frontend = frontend_of(path)
    for seed in seeds:
        random_ = random.Random(seed)
        text, weights = kept[random_.choice(list(kept))]
        if random_.random() < 0.8:
            text = _damage(random_, text)
        else:
            weights = _damage(random_, weights[:40]) + weights[40 : random_.randrange(len(weights))]
        try:
            frontend.to_graph(network(folder, text.decode("latin-1"), weights))
        except weft.WeftError:
            refused += 1
    return refused


def test_damaged_networks_end_in_errors_of_weft(tmp_path: Path) -> None:
    assert _damaged_files(tmp_path, range(300)) > 150


@pytest.mark.slow
def test_many_damaged_networks(tmp_path: Path) -> None:
    assert _damaged_files(tmp_path, range(1000, 11_000)) > 5000
