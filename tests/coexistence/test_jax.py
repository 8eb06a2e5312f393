"""Plait and jax in one process, in either order of imports: neither may change the other.

`nox -s coexistence` runs these where jax is installed. Each runs in a Python of its own, since
what is imported first cannot be changed afterwards.

Invariant: results are compared with numpy's, and never with those of the other library.
"""

import os
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("jax", reason="run by `nox -s coexistence`")

USE_PLAIT = """
import numpy as np
import plait

def use_plait():
    x = np.linspace(0.0, 1.0, 5, dtype=np.float32)
    np.testing.assert_allclose(plait.numpy.sin(x) + 1, np.sin(x) + 1, rtol=1e-6)
    twice_cos = plait.jit(lambda v: plait.numpy.cos(v) * 2)
    np.testing.assert_allclose(twice_cos(x), np.cos(x) * 2, rtol=1e-6)
    np.testing.assert_allclose(plait.vmap(plait.grad(plait.numpy.sin))(x), np.cos(x), rtol=1e-6)
    assert plait.numpy.zeros(2, dtype=np.float64).dtype == np.float64
    assert (plait.numpy.arange(3) + 1).dtype == np.int32

use_plait()
"""

USE_JAX = """
import numpy as np
import jax
import jax.numpy as jnp
from jax._src import literals

def use_jax():
    x = np.linspace(0.0, 1.0, 5, dtype=np.float32)
    np.testing.assert_allclose(jnp.sin(x) + 1, np.sin(x) + 1, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(lambda v: jnp.cos(v) * 2)(x), np.cos(x) * 2, rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(jax.grad(jnp.sin))(x), np.cos(x), rtol=1e-6)
    assert jnp.zeros(2, dtype=np.float32).dtype == np.float32
    for kind in (np.int32, np.int64):  # what jaxlib converts by tables that jax fills
        typed = literals.TypedInt(3, np.dtype(kind))
        assert jax.jit(lambda v: v)(typed).dtype == kind
        assert int(jax.jit(lambda v: v + 1)(typed)) == 4
    for kind in (np.float32, np.float64):
        typed = literals.TypedFloat(0.5, np.dtype(kind))
        with jax.enable_x64(True):
            assert jax.jit(lambda v: v)(typed).dtype == kind
    with jax.enable_x64(True):
        assert jnp.sin(np.float64(0.5)).dtype == np.float64
    assert jnp.sin(0.5).dtype == np.float32
    total = jnp.ones(3) + jnp.arange(3)
    assert total.shape == (3,) and "Array" in repr(total)

use_jax()
"""

ORDERS = {
    "plait is imported and used first": USE_PLAIT + USE_JAX,
    "jax is imported and used first": USE_JAX + USE_PLAIT,
    "plait is imported first, used second": "import plait\n" + USE_JAX + USE_PLAIT,
    "jax is imported first, used second": "import jax\n" + USE_PLAIT + USE_JAX,
}
in_each_order = pytest.mark.parametrize("start", [*ORDERS.values()], ids=[*ORDERS])


def run(code: str, **env: str) -> str:
    """What a Python of its own prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "JAX_PLATFORMS": "cpu", **env},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@in_each_order
def test_both_work(start):
    run(start + "for _ in range(2):\n    use_plait()\n    use_jax()\n")


def test_plait_never_imports_jax():
    code = USE_PLAIT + "import sys\nx = plait.numpy.ones(3)\n"
    code += "np.from_dlpack(x), np.asarray(x), x + 1\n"
    assert run(code + "print('jax' in sys.modules)").strip() == "False"


@in_each_order
def test_settings_of_jax_do_not_reach_plait(start):
    run(
        start
        + textwrap.dedent("""
        jax.clear_caches()
        use_plait()
        with jax.disable_jit():
            use_plait()
        with jax.enable_x64(True):
            use_plait()
        with jax.numpy_dtype_promotion("strict"):
            use_plait()
        with jax.debug_nans(True):
            assert np.isnan(np.asarray(plait.numpy.log(plait.numpy.asarray(-1.0))))
        use_jax()
        """)
    )


@in_each_order
def test_settings_of_plait_do_not_reach_jax(start):
    run(
        start
        + textwrap.dedent("""
        with plait.config(default_float="float64", default_int="int64"):
            assert plait.numpy.sin(0.5).dtype == np.float64
            use_jax()
        with plait.config(x64=False):
            use_jax()
        use_plait()
        """)
    )


@in_each_order
def test_arrays_pass_through_each_others_doors(start):
    run(
        start
        + textwrap.dedent("""
        values = np.arange(6, dtype=np.float32).reshape(2, 3)
        ours, theirs = plait.numpy.asarray(values), jnp.asarray(values)
        np.testing.assert_array_equal(plait.numpy.asarray(theirs), values)
        np.testing.assert_array_equal(plait.numpy.sin(theirs), np.asarray(plait.numpy.sin(values)))
        np.testing.assert_array_equal(plait.jit(lambda x: x * 2)(theirs), values * 2)
        np.testing.assert_array_equal(jnp.asarray(ours), values)
        np.testing.assert_array_equal(jnp.from_dlpack(ours), values)
        np.testing.assert_array_equal(np.from_dlpack(ours), values)
        use_jax()
        use_plait()
        """)
    )


@in_each_order
def test_kinds_are_told_apart(start):
    run(
        start
        + textwrap.dedent("""
        ours, theirs = plait.numpy.ones(3), jnp.ones(3)
        assert not isinstance(ours, jax.Array)
        assert not isinstance(theirs, plait.Array)
        for total in (
            ours + plait.numpy.asarray(theirs),
            plait.numpy.add(theirs, ours),
            np.ones(3, np.float32) + ours,
        ):
            assert isinstance(total, plait.Array)
            np.testing.assert_array_equal(total, np.full(3, 2.0))
        for mixed in (lambda: ours + theirs, lambda: theirs + ours):
            try:  # neither library decides for an array of the other
                mixed()
            except TypeError:
                continue
            raise AssertionError("an array of the other library was taken for ours")
        assert isinstance(theirs + theirs, jax.Array)
        assert type(jax.tree.leaves([ours])[0]) is type(ours)
        assert type(plait.tree.leaves([theirs])[0]) is type(theirs)
        """)
    )


@in_each_order
def test_a_deleted_array_of_one_is_an_error_of_the_other(start):
    run(
        start
        + textwrap.dedent("""
        theirs = jnp.ones(3)
        theirs.delete()
        try:
            plait.numpy.sin(theirs)
        except RuntimeError as error:
            assert "deleted" in str(error).lower()
        else:
            raise AssertionError("a deleted array was read")
        use_plait()
        """)
    )


@in_each_order
def test_traces_of_both_can_be_open_at_once(start):
    run(
        start
        + textwrap.dedent("""
        def theirs(x):
            plait.jit(lambda v: plait.numpy.sin(v))(np.float32(0.5))
            return jnp.cos(x)

        def ours(x):
            jax.jit(lambda v: jnp.sin(v))(np.float32(0.5))
            return plait.numpy.cos(x)

        assert np.isclose(float(jax.jit(theirs)(0.5)), np.cos(0.5))
        assert np.isclose(float(jax.grad(theirs)(0.5)), -np.sin(0.5))
        assert np.isclose(float(plait.jit(ours)(0.5)), np.cos(0.5))
        assert np.isclose(float(plait.grad(ours)(0.5)), -np.sin(0.5))
        """)
    )


def test_numpy_arguments_before_and_after_jax_is_imported():
    """Until jax is there, jaxlib takes numpy arrays of jitted calls by itself; then we do."""
    run(
        textwrap.dedent("""
        import sys
        import numpy as np
        import plait

        f = plait.jit(lambda x, y: x + y)
        single, double = np.ones(3, np.float32), np.full(3, 1 + 1e-12)

        def check():
            for _ in range(3):
                for x in (single, double):
                    out = f(x, x)
                    assert out.dtype == x.dtype, out.dtype
                    np.testing.assert_array_equal(out, x + x)

        check()
        assert "jax" not in sys.modules
        import jax

        assert jax.jit(lambda v: v)(double).dtype == np.float32
        check()
        with jax.disable_jit():
            check()
        with jax.enable_x64(True):
            assert jax.jit(lambda v: v)(double).dtype == np.float64
            check()
        jax.clear_caches()
        check()
        """)
    )
