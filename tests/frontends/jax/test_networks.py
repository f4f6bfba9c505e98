"""Networks written in JAX, compiled, and compared with what JAX computes; and the ways in which they are given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp
from jax import export
from tests.frontends.jax import functions, further_functions
from tests.frontends.jax.functions import Array

import weft
from weft.driver.build import build
from weft.frontends.jax.lowering import lower
from weft.runtime import Model

NETWORKS = functions.NETWORKS | further_functions.NETWORKS


def assert_close(got: object, wanted: Array) -> None:
    assert isinstance(got, np.ndarray)
    assert got.shape == wanted.shape
    assert wanted.std() > 0.01
    assert np.abs(got - wanted).max() <= 1e-5 * np.abs(wanted).max()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", NETWORKS)
def test_network_equals_jax(name: str) -> None:
    network, given = NETWORKS[name]
    assert_close(weft.from_jax(network, *given)(*given), np.asarray(network(*given)))


def test_inputs_are_called_by_their_place_in_a_tree() -> None:
    def layer(params: dict[str, Array], x: Array, *, scale: float) -> Array:
        return x @ params["w"] * scale

    x, w = np.ones((2, 3), np.float32), np.arange(12, dtype=np.float32).reshape(3, 4)
    model = weft.compile(jax.jit(layer), example_inputs={"params": {"w": w}, "x": x, "scale": np.float32(2)})
    assert [i.name for i in model.inputs] == ["params['w']", "scale", "x"]
    np.testing.assert_allclose(model(w, np.float32(2), x), x @ w * 2)


def test_arrays_that_a_function_holds_are_weights_and_not_text() -> None:
    held = jnp.asarray(np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32))
    made = lower(lambda x: x @ held, [np.ones((1, 64), np.float32)])
    assert [w.shape for w in made.weights] == [(64, 64)]
    assert "dense<" not in made.text


def test_text_bytecode_and_exported_functions_are_read(tmp_path: Path) -> None:
    w = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)
    symbolic = jax.ShapeDtypeStruct(export.symbolic_shape("b, 5"), jnp.float32)
    exported = export.export(jax.jit(lambda x: jnp.sin(x) @ w))(symbolic)
    (tmp_path / "f.mlir").write_text(exported.mlir_module())
    (tmp_path / "f.bin").write_bytes(exported.mlir_module_serialized)
    x = np.random.default_rng(1).standard_normal((3, 5)).astype(np.float32)
    for given in (exported, tmp_path / "f.mlir", tmp_path / "f.bin", exported.mlir_module_serialized):
        model = weft.compile(given)
        assert model.inputs[0].shape == (f"{model.inputs[0].name}_dim0", 5)
        assert_close(model(x), np.sin(x) @ w)


def test_a_function_that_jax_can_not_trace() -> None:
    with pytest.raises(weft.ModelError) as caught:
        weft.from_jax(lambda x: x @ x, np.ones((2, 3), np.float32))
    assert str(caught.value) == (
        "JAX can't trace the function: TypeError: dot_general requires contracting dimensions to have the same shape, "
        "got (3,) and (2,).\n  hint: call it with these arguments under jax.jit, and mend what that says"
    )


def test_operations_that_weft_lacks_are_named_with_the_line_of_the_program() -> None:
    with pytest.raises(weft.UnsupportedOperators) as caught:
        weft.from_jax(
            lambda x: (jnp.linalg.eigvals(x), jax.lax.rng_uniform(x[0, 0], x[1, 1], (3,))), np.eye(4, dtype=np.float32)
        )
    message = str(caught.value)
    assert "stablehlo.complex custom_call, 1 node: " in message
    assert "stablehlo.rng, 1 node: " in message
    assert "rng_uniform (test_networks.py:" in message


def test_a_function_alone_is_no_model() -> None:
    with pytest.raises(weft.ModelError, match=r"weft\.from_jax\(fn, \*args\)"):
        weft.compile(jax.jit(lambda x: x))
    lowered = jax.jit(lambda x: x).lower(1.0)
    with pytest.raises(weft.InputError, match="a function that is lowered already"):
        weft.compile(lowered, example_inputs=(1.0,))


@pytest.mark.parametrize("by", ["index", "slice"])
def test_loops_put_rows_where_their_state_is(by: str) -> None:
    """Each row is computed from the one before it; one behind the last is left out, or moved inside."""

    def network(s: Any, x: Any) -> Any:
        def put(i: Any, s: Any) -> Any:
            row = jnp.tanh(s[i] + x)
            return s.at[i + 1].set(row) if by == "index" else jax.lax.dynamic_update_slice(s, row[None], (i + 1, 0))

        return jax.lax.fori_loop(0, 40, put, s)

    given = np.random.default_rng(0).standard_normal((40, 8)).astype(np.float32), np.ones(8, np.float32)
    made = build(export.export(jax.jit(network))(*given))
    (loop,) = [g for g in made.fused.groups if g.regions]
    assert len(loop.regions[0].updates) == 1
    (y,) = Model(made.package).run(list(given))
    assert_close(y, np.asarray(network(*given)))
