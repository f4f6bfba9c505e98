"""`weft run` runs models and artifacts on given or made-up inputs."""

from __future__ import annotations

import errno
import inspect
import json
import os
import re
import shutil
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from tests.cli.commands import Cli

import weft
from weft.cli.compile_options import CompileFlags
from weft.runtime import artifact
from weft.targets.registry import TARGETS


def test_given_inputs(cli: Cli) -> None:
    done = cli("run", "mlp.onnx", "--input", "x=x.npy", "--save", "made/here")
    assert done.code == 0
    assert re.match(r"ready in [\d.]+ m?s, ran in [\d.]+ m?s\ny: float32\[2, 10\]\n\[\[", done.out)
    wanted = np.asarray(weft.compile("mlp.onnx")(np.load("x.npy")))
    assert np.array_equal(np.load("made/here/y.npy"), wanted)
    assert os.listdir("made/here") == ["y.npy"]


def test_random_inputs_are_seeded(cli: Cli) -> None:
    args = ["run", "mlp.onnx", "--random", "-q"]
    first = cli(*args)
    assert first.code == 0
    assert first.out.startswith("y: float32[1, 10]\n[[")
    assert cli(*args).out == first.out
    assert cli(*args, "--seed", "1").out != first.out
    assert cli(*args, "--threads", "1").out == first.out


def test_random_inputs_of_a_given_size(cli: Cli) -> None:
    cli("compile", "mlp.onnx", "-o", "mlp.weft")
    for model in ("mlp.onnx", "mlp.weft"):
        done = cli("run", model, "--random", "--shape", "batch=3", "-q")
        assert done.out.startswith("y: float32[3, 10]\n")


def test_json(cli: Cli) -> None:
    done = cli("run", "mlp.onnx", "-i", "x=x.npy", "--json")
    figures = json.loads(done.out)
    y = np.asarray(weft.compile("mlp.onnx")(np.load("x.npy")))
    assert figures.pop("seconds") > 0
    assert figures.pop("load_seconds") > 0
    facts = {"dtype": "float32", "shape": [2, 10], "min": float(y.min()), "max": float(y.max())}
    facts["mean"] = float(y.astype(np.float64).mean())
    assert figures == {"model": "mlp.onnx", "outputs": {"y": facts}}


def test_json_has_no_bare_nan(cli: Cli) -> None:
    np.save("nan.npy", np.full((2, 24), np.nan, np.float32))
    done = cli("run", "mlp.onnx", "-i", "x=nan.npy", "--json")
    facts = json.loads(done.out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))["outputs"]["y"]
    assert (facts["min"], facts["max"], facts["mean"]) == ("nan", "nan", "nan")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            [],
            "no value for x: f32[batch, 24]\n  hint: give --input NAME=FILE.npy for each, or --random",
        ),
        (["--input", "x"], "--input 'x' is not of the form NAME=FILE.npy\n  hint: such as --input x=image.npy"),
        (
            ["--input", "x=gone.npy"],
            "--input x: gone.npy can't be read: No such file or directory\n  hint: check the path",
        ),
        (
            ["--input", "x=mlp.onnx"],
            "--input x: mlp.onnx is no array: it does not begin as a .npy file does\n  hint: save it with numpy.save",
        ),
        (
            ["--input", "x=empty"],
            "--input x: empty is no array: it does not begin as a .npy file does\n  hint: save it with numpy.save",
        ),
        (["--input", "x=two.npz"], "--input x: two.npz holds several arrays\n  hint: save one with numpy.save"),
        (["--input", "y=x.npy", "--random"], "there is no input 'y'\n  hint: the model takes (x: f32[batch, 24])"),
        (
            ["--input", "x=wide.npy"],
            "input 'x' has shape (2, 25): dimension 1 is 25, not 24\n  hint: the model takes x: f32[batch, 24]",
        ),
        (["--random", "--save", "mlp.onnx"], "mlp.onnx can't be written: File exists\n  hint: choose another place"),
        (
            ["--random", "--target", "gpu"],
            f"there is no target 'gpu'\n  hint: {TARGETS}",
        ),
        (["--random", "--precision", "fp16"], 'precision is \'fp16\'\n  hint: use "model", "strict", "bf16" or "tf32"'),
        (
            ["--random", "--shape", "bach=2"],
            "shapes has 'bach', which is no symbolic dimension of the model\n  hint: inputs: x; symbolic dimensions: batch",
        ),
    ],
)
def test_what_goes_wrong_is_told(cli: Cli, args: list[str], message: str) -> None:
    Path("empty").touch()
    np.savez("two.npz", a=np.ones(1), b=np.ones(1))
    np.save("wide.npy", np.ones((2, 25), np.float32))
    done = cli("run", "mlp.onnx", *args)
    assert (done.code, done.out, done.err) == (1, "", f"error: {message}\n")


def test_more_than_the_memory(cli: Cli) -> None:
    cli("compile", "mlp.onnx", "-o", "mlp.weft")
    done = cli("run", "mlp.weft", "--random", "--shape", f"batch={1 << 50}")
    assert (done.code, done.out) == (1, "")
    assert re.fullmatch(r"error: there is not enough memory: Unable to allocate .*\n", done.err)


def test_a_damaged_artifact(cli: Cli) -> None:
    cli("compile", "mlp.onnx", "-o", "mlp.weft")
    data = Path("mlp.weft").read_bytes()
    Path("mlp.weft").write_bytes(data[:-1])
    done = cli("run", "mlp.weft", "--random")
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        f"error: mlp.weft: the file is truncated: it has {len(data) - 1} of {len(data)} bytes\n  hint: copy it again\n"
    )


def test_a_full_disk_leaves_no_output(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("run", "mlp.onnx", "--random")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    done = cli("run", "mlp.onnx", "--random", "--save", "out")
    assert (done.code, done.out) == (1, "")
    assert done.err == "error: out/y.npy can't be written: No space left on device\n  hint: choose another place\n"
    assert os.listdir("out") == []


SAVED = (
    "mlp.weft is compiled already: {} no effect on it\n"
    "  hint: give {} to `weft compile`, with the model that it was made from"
)


@pytest.mark.parametrize(
    "command", [["run", "--random"], ["inspect"], ["report", "-o", "page.html"], ["compile", "-o", "again.weft"]]
)
@pytest.mark.parametrize(
    ("options", "flags"),
    [
        (["--target", "cpu"], "--target"),
        (["-O0"], "--opt-level"),
        (["-O3"], "--opt-level"),
        (["--precision", "strict"], "--precision"),
        (["--without", "winograd"], "--without"),
        (["--records", "tune.db"], "--records"),
    ],
)
def test_options_that_have_no_effect_on_a_saved_model(
    cli: Cli, mlp_weft: Path, command: list[str], options: list[str], flags: str
) -> None:
    shutil.copy(mlp_weft, "mlp.weft")
    done = cli(command[0], "mlp.weft", *command[1:], *options)
    assert (done.code, done.out, done.err) == (1, "", f"error: {SAVED.format(f'{flags} has', 'it')}\n")


def test_the_checksum_of_a_large_saved_model_is_verified_where_that_is_asked_for(
    cli: Cli, mlp_weft: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifact, "MOST_SUMMED", 0)
    whole = bytearray(mlp_weft.read_bytes())
    whole[-1] ^= 1
    Path("mlp.weft").write_bytes(whole)
    assert cli("run", "mlp.weft", "--random", "-q").code == 0
    done = cli("run", "mlp.weft", "--random", "-q", "--verify")
    assert done.err == "error: mlp.weft: the file was altered: its checksum is wrong\n  hint: copy it again\n"
    assert "--verify has no effect" in cli("inspect", "mlp.weft", "--verify").err


def test_several_options_that_have_no_effect_are_told_at_once(cli: Cli, mlp_weft: Path) -> None:
    shutil.copy(mlp_weft, "mlp.weft")
    done = cli("run", "mlp.weft", "--random", "-O0", "--precision", "strict", "--target", "cpu")
    assert done.err == f"error: {SAVED.format('--target, --opt-level and --precision have', 'them')}\n"
    assert cli("run", "mlp.weft", "--random", "--no-cache", "-q").code == 0  # as asked: the cache is not used


def test_every_compile_option_is_refused_on_a_saved_model() -> None:
    """A new option of the compiler is refused by being a field; `--shape` has a meaning for `weft run --random` alone."""
    parameters = inspect.signature(weft.compile).parameters
    apart = {"model", "threads", "spinning", "cache", "progress", "shapes", "example_inputs"}
    assert set(parameters) - apart == {f.name for f in fields(CompileFlags)} - {"shape"}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ["--random", "--shape", "bach=2"],
            "--shape has 'bach', which is no symbolic dimension of mlp.weft\n  hint: its symbolic dimensions: batch",
        ),
        (
            ["-i", "x=x.npy", "--shape", "batch=2"],
            "mlp.weft is compiled already: --shape has no effect on it but for the inputs that --random makes up\n"
            "  hint: give --random too, or give --shape to `weft compile`",
        ),
    ],
)
def test_sizes_that_say_nothing_of_a_saved_model(cli: Cli, mlp_weft: Path, args: list[str], message: str) -> None:
    shutil.copy(mlp_weft, "mlp.weft")
    done = cli("run", "mlp.weft", *args)
    assert (done.code, done.out, done.err) == (1, "", f"error: {message}\n")
