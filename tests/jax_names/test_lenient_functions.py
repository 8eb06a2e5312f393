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


def test_a_result_without_an_axis_is_the_first_devices(jax):
    x = np.arange(6, dtype=np.float32).reshape(1, 3, 2)
    rows = jax.pmap(lambda v: v * 2, out_axes=None)
    assert rows(x).tolist() == (2 * x[0]).tolist()
    assert jax.pmap(rows)(x).tolist() == (2 * x[:, 0]).tolist()  # one device has all the rows

    @jax.pmap
    def named(v):
        return v + 1

    assert named(x).tolist() == (x + 1).tolist() and named.__name__ == "named"


def test_a_tree_of_one_dtype_takes_the_vectors(jax):
    """A tree of several dtypes gets these back."""
    flat, unravel = jax.flatten_util.ravel_pytree({"a": np.int32([1, 2]), "b": np.int32(3)})
    assert flat.tolist() == [1, 2, 3] and flat.dtype == np.int32
    for dtype in (np.int32, np.float32, np.float16, np.complex64):
        tree = unravel(np.asarray([4, 5, 6], dtype))
        assert tree["a"].tolist() == [4, 5] and tree["b"].item() == 6
        assert {v.dtype for v in jax.tree.leaves(tree)} == {np.dtype(dtype)}
    assert unravel == jax.flatten_util.ravel_pytree({"a": np.int32([5, 5]), "b": np.int32(5)})[1]
    slope = jax.jacfwd(lambda v: unravel(v)["a"] ** 2)(np.float32([1, 2, 3]))
    assert slope.tolist() == [[2, 0, 0], [0, 4, 0]]
    mixed = jax.flatten_util.ravel_pytree([np.float16([1]), np.float32([2])])[1]
    assert [v.dtype.name for v in mixed(np.float32([1, 2]))] == ["float16", "float32"]
