"""States, which live across calls, in C programs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.decoders import growing_decoder
from tests.export.conftest import HERE, NATIVE, RT, SANITIZERS, STRICT, Library, build

import weft
from weft.driver.export.c_header import header_text


@pytest.fixture(scope="module")
def decoder() -> weft.Model:
    """A decoder of one layer, whose cache is a state with room for five tokens."""
    made = growing_decoder(layers=1).SerializeToString()
    return weft.compile(made, state={"past_*": "present_*"}, capacity={"past_*": 5}, threads=1)


@pytest.mark.parametrize("more", [[], pytest.param(SANITIZERS["address"], marks=pytest.mark.slow)])
def test_in_c(decoder: weft.Model, library: Library, tmp_path: Path, more: list[str]) -> None:
    decoder.save(tmp_path / "decoder.weft")
    flags = ["-std=c99", *more]
    program = build("gcc", tmp_path / "state", *flags, *STRICT, f"-I{RT}", HERE / "state.c", library("gcc", *flags))
    done = subprocess.run([program, tmp_path / "decoder.weft"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("more", [[], ["-fno-exceptions", "-fno-rtti"], *[[f] for f in SANITIZERS["address"][:1]]])
def test_in_cpp(decoder: weft.Model, library: Library, tmp_path: Path, more: list[str]) -> None:
    decoder.save(tmp_path / "decoder.weft")
    both = [f for f in more if f.startswith("-fsanitize")]
    flags = ["-std=c++17", *STRICT, *more, f"-I{RT}", f"-I{NATIVE / 'cpp'}"]
    program = build("g++", tmp_path / "state", *flags, HERE / "state.cpp", library("gcc", "-std=c99", *both))
    done = subprocess.run([program, tmp_path / "decoder.weft"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_header_of_a_linked_model_takes_what_a_caller_gives(decoder: weft.Model) -> None:
    text = header_text(decoder.package, "decoder", embedded=True)
    assert "//   state   past_k0: f32[1, 2, 5, 16]\n" in text
    assert "decoder_run(weft_ctx *ctx, int64_t x_new, const int64_t *ids, float *logits)" in text
    assert "give the context a state first, by weft_use. */" in text
