"""What libraries read of JAX's functions where Plait's own give, or take, less.

Invariant: the other side is numpy, or ml_dtypes by numpy's methods.
"""

import copy
import inspect
import pickle

import numpy as np
import pytest

from plait_jax import lenient


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn"])
def test_numbers_of_finfo_are_scalars_of_the_dtype(dtype):
    info = lenient.finfo(dtype)
    for name in ("max", "min", "eps", "tiny"):
        got = getattr(info, name)
        assert isinstance(got, np.generic) and got.dtype == info.dtype == np.dtype(dtype)
        assert got.astype("float64").dtype == np.float64
    if dtype in ("float16", "float32", "float64"):
        want = np.finfo(dtype)
        assert (info.max, info.min, info.eps, info.tiny) == (
            want.max, want.min, want.eps, want.tiny
        )  # fmt: skip
        assert info.bits == want.bits and isinstance(info.bits, int)
    for other in (copy.copy(info), pickle.loads(pickle.dumps(info))):
        assert other.max == info.max
    assert str(info.dtype) in repr(info)
    with pytest.raises(AttributeError):
        info.no_such_number


def test_of_complex_numbers_it_is_that_of_their_parts():
    assert lenient.finfo("complex64").eps.dtype == np.float32


def test_bounds_with_more_axes_than_the_shape(jax):
    key = jax.random.PRNGKey(0)
    plain = float(jax.random.uniform(key))
    for shape in ((1,), (1, 1)):
        low = np.full(shape, 2, np.float32)
        got = jax.random.uniform(key, (), np.float32, low, low + 1)
        np.testing.assert_allclose(got, np.full(shape, 2 + plain), rtol=1e-6)
    with pytest.raises(TypeError):
        jax.random.uniform(key, (), np.float32, np.zeros(3), np.ones(3))


def test_eigenvalues_are_those_of_the_mean_whatever_triangle_is_named(jax):
    a = np.array([[1.0, 2, 3], [9, 4, 5], [9, 9, 6]], np.float32)
    mean = np.linalg.eigvalsh((a + a.T) / 2)
    similar = lambda got, want: np.testing.assert_allclose(got, want, rtol=1e-5)  # noqa: E731
    for side in (None, "L", "U"):
        similar(jax.numpy.linalg.eigh(a, side)[0], mean)
        similar(jax.numpy.linalg.eigh(a, UPLO=side, symmetrize_input=True).eigenvalues, mean)
        one = np.linalg.eigvalsh(a, side or "L")
        similar(jax.numpy.linalg.eigh(a, side, symmetrize_input=False)[0], one)
    for lower in (True, False):
        similar(jax.scipy.linalg.eigh(a, lower=lower, eigvals_only=True), mean)
        w, v = map(np.asarray, jax.scipy.linalg.eigh(a + 1j * np.tril(a), lower=lower))
        h = (a + 1j * np.tril(a) + (a - 1j * np.tril(a)).T) / 2
        np.testing.assert_allclose(h @ v, v * w, atol=1e-4)
    with pytest.raises(ValueError):
        jax.scipy.linalg.eigh(np.ones((2, 3)))


REDUCTIONS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "amin": np.minimum}
REDUCTIONS |= {"min": np.minimum, "amax": np.maximum, "nansum": np.add, "nanprod": np.multiply}
REDUCTIONS |= {"nanmax": np.maximum, "nanmin": np.minimum}


@pytest.mark.parametrize("name", sorted(REDUCTIONS))
def test_an_initial_value_does_not_change_the_dtype(jax, name):
    """It is converted to the dtype that the result has without it."""
    reduce, join = getattr(jax.numpy, name), REDUCTIONS[name]
    firsts = (0, 2.5, True, np.int64(3), np.float64(2), np.int8(2), np.array(3, np.uint16))
    for dtype in ("int8", "uint8", "int32", "bool", "float16", "float32", "complex64"):
        x = np.array([[1, 0, 1], [1, 1, 0]]).astype(dtype)
        plain = reduce(x, axis=0)
        for first in firsts:
            for got in (
                reduce(x, axis=0, initial=first),
                reduce(x, 0, None, None, False, first)
                if "initial" in [*inspect.signature(reduce).parameters][5:6]
                else plain,
                jax.jit(lambda v, f: reduce(v, axis=0, initial=f))(x, first),
            ):
                assert got.dtype == plain.dtype and got.shape == (3,)
            got = reduce(x, axis=0, initial=first)
            want = join(np.asarray(plain), np.asarray(first).astype(plain.dtype))
            np.testing.assert_array_equal(got, want)
    assert reduce(np.zeros((0,), np.int8), initial=1.5).dtype == reduce(np.int8([1])).dtype
    if "dtype" in inspect.signature(reduce).parameters:
        assert reduce(np.int8([1]), dtype="int16", initial=1.5).dtype == np.int16


def test_a_static_position_out_of_range_is_clamped_or_dropped(jax):
    x = jax.numpy.arange(4)
    for f in (lambda f: f, jax.jit):
        assert f(lambda v: v[9])(x) == 3 and f(lambda v: v[-9])(x) == 0
        assert f(lambda v: v.at[9].set(7))(x).tolist() == [0, 1, 2, 3]
        assert f(lambda v: v.at[np.array([1, 9])].add(7))(x).tolist() == [0, 8, 2, 3]
    jax.config.update("jax_check_static_indices", True)
    with pytest.raises(IndexError, match="index 9 is out of range"):
        x[9]


def test_the_number_of_compiled_calls(jax):
    f = jax.jit(lambda x, n: x * n, static_argnames="n")
    g, h = jax.jit(lambda x: x + 1), jax.jit(lambda x: x - 1)
    assert f._cache_size() == g._cache_size() == 0
    for x in (1.0, 2.0, np.ones(3, np.float32), np.zeros(3, np.float32)):
        g(x)
        for n in (2, 3, 2):
            f(x, n=n)
    assert g._cache_size() == 2 and f._cache_size() == 4
    jax.jit(lambda x: 2 * h(x))(np.ones(3, np.float32))
    assert h._cache_size() == 0  # staged, and compiled with what is around it
    f.clear_cache()
    assert f._cache_size() == 0 and g._cache_size() == 2


def test_hints_for_compilers_change_nothing(jax):
    from jax.experimental import scheduling_groups, xla_metadata

    f = scheduling_groups.scheduling_group(name="inner")(lambda x: 2 * x)
    g = scheduling_groups.xla_metadata_call(inlineable="false")(f)
    h = scheduling_groups.xla_metadata_call(lambda x: xla_metadata.set_xla_metadata(g(x), key="v"))
    assert float(jax.jit(h)(3.0)) == float(h(3.0)) == 6.0
    with xla_metadata.set_xla_metadata(key="v"):
        assert float(h(2.0)) == 4.0
    tree = {"a": np.ones(2), "b": None}
    assert xla_metadata.set_xla_metadata(tree, key="v") is tree


def test_the_cache_of_compiled_programs(jax, tmp_path):
    from jax.experimental.compilation_cache import compilation_cache

    before = jax.config.jax_compilation_cache_dir
    try:
        compilation_cache.set_cache_dir(tmp_path)
        compilation_cache.reset_cache()
        assert jax.config.jax_compilation_cache_dir == str(tmp_path)
        assert float(jax.jit(lambda x: x * 3.25 + 1.125)(1.0)) == 4.375
        assert any(p.is_file() for p in tmp_path.rglob("*"))
    finally:
        jax.config.update("jax_compilation_cache_dir", before)
