"""Functions of several packages under JAX's names: their further arguments, and what they pass on.

Invariant: the expected values are written down here.
"""

import numpy as np
import pytest

import plait_jax


def cube(x):
    return x * x * x


def test_arguments_that_change_nothing(jax):
    x = np.float32(2)
    assert jax.grad(cube, reduce_axes=())(x) == 12
    assert jax.value_and_grad(cube, 0, reduce_axes=[])(x) == (8, 12)
    assert jax.vjp(cube, x, reduce_axes=())[1](x) == (24,)
    assert jax.linear_transpose(lambda v: 3 * v, x, reduce_axes=())(x) == (6,)
    assert jax.vmap(cube, sum_match=False)(np.arange(3.0)).tolist() == [0, 1, 8]
    assert jax.grad(jax.checkpoint(cube, concrete=False))(x) == 12
    assert jax.grad(jax.remat(concrete=False)(cube))(x) == 12 and jax.remat is jax.checkpoint
    with pytest.raises(plait_jax.MissingName, match=r"reduce_axes=\('i',\) of jax.grad") as e:
        jax.grad(cube, reduce_axes=("i",))
    assert __file__ in str(e.value)


def test_values_have_a_module_that_libraries_choose_functions_by(jax):
    """As autoray does."""
    seen = []

    def see(x):
        seen.append(type(x).__module__.partition(".")[0])
        return x

    x = jax.numpy.ones(2)
    see(x)
    for use in (jax.jit, jax.vmap, jax.jacfwd, jax.checkpoint):
        use(see)(x)
    for use in (jax.grad, jax.hessian):
        use(see)(1.0)
    jax.lax.scan(lambda c, v: (see(c), v), 1.0, x)
    assert len(seen) >= 7 and set(seen) == {"jax"}


def test_a_checkpoint_has_jaxs_parameters(jax):
    again = jax.make_jaxpr(jax.checkpoint(lambda x: x * 2))(1.0).eqns[0]
    assert {"jaxpr", "differentiated", "policy", "prevent_cse"} == set(again.params)
    assert again.primitive.name == "remat2"
