"""Weft and jax in one process, in either order of imports: neither may change the other.

`nox -s coexistence` runs these where jax is installed. Each runs in a Python of its own, since
what is imported first can not be changed afterwards.

Invariant: results are compared with numpy's, and never with those of the other library.
"""

import os
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("jax", reason="run by `nox -s coexistence`")

USE_WEFT = """
import numpy as np
import weft as wf

def use_weft():
    x = np.linspace(0.0, 1.0, 5, dtype=np.float32)
    np.testing.assert_allclose(wf.numpy.sin(x) + 1, np.sin(x) + 1, rtol=1e-6)
    np.testing.assert_allclose(wf.jit(lambda v: wf.numpy.cos(v) * 2)(x), np.cos(x) * 2, rtol=1e-6)
    np.testing.assert_allclose(wf.vmap(wf.grad(wf.numpy.sin))(x), np.cos(x), rtol=1e-6)
    assert wf.numpy.zeros(2, dtype=np.float64).dtype == np.float64
    assert (wf.numpy.arange(3) + 1).dtype == np.int32

use_weft()
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
    "weft is imported and used first": USE_WEFT + USE_JAX,
    "jax is imported and used first": USE_JAX + USE_WEFT,
    "weft is imported first, used second": "import weft\n" + USE_JAX + USE_WEFT,
    "jax is imported first, used second": "import jax\n" + USE_WEFT + USE_JAX,
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
    run(start + "for _ in range(2):\n    use_weft()\n    use_jax()\n")


def test_weft_never_imports_jax():
    weft = USE_WEFT + "import sys\n"
    weft += "np.from_dlpack(wf.numpy.ones(3)), np.asarray(wf.numpy.ones(3)), wf.numpy.ones(3) + 1\n"
    assert run(weft + "print('jax' in sys.modules)").strip() == "False"


@in_each_order
def test_settings_of_jax_do_not_reach_weft(start):
    run(
        start
        + textwrap.dedent("""
        jax.clear_caches()
        use_weft()
        with jax.disable_jit():
            use_weft()
        with jax.enable_x64(True):
            use_weft()
        with jax.numpy_dtype_promotion("strict"):
            use_weft()
        with jax.debug_nans(True):
            assert np.isnan(np.asarray(wf.numpy.log(wf.numpy.asarray(-1.0))))
        use_jax()
        """)
    )


@in_each_order
def test_settings_of_weft_do_not_reach_jax(start):
    run(
        start
        + textwrap.dedent("""
        with wf.config(default_float="float64", default_int="int64"):
            assert wf.numpy.sin(0.5).dtype == np.float64
            use_jax()
        with wf.config(x64=False):
            use_jax()
        use_weft()
        """)
    )


@in_each_order
def test_arrays_pass_through_each_others_doors(start):
    run(
        start
        + textwrap.dedent("""
        values = np.arange(6, dtype=np.float32).reshape(2, 3)
        ours, theirs = wf.numpy.asarray(values), jnp.asarray(values)
        np.testing.assert_array_equal(wf.numpy.asarray(theirs), values)
        np.testing.assert_array_equal(wf.numpy.sin(theirs), np.asarray(wf.numpy.sin(values)))
        np.testing.assert_array_equal(wf.jit(lambda x: x * 2)(theirs), values * 2)
        np.testing.assert_array_equal(jnp.asarray(ours), values)
        np.testing.assert_array_equal(jnp.from_dlpack(ours), values)
        np.testing.assert_array_equal(np.from_dlpack(ours), values)
        use_jax()
        use_weft()
        """)
    )


@in_each_order
def test_kinds_are_told_apart(start):
    run(
        start
        + textwrap.dedent("""
        ours, theirs = wf.numpy.ones(3), jnp.ones(3)
        assert not isinstance(ours, jax.Array)
        assert not isinstance(theirs, wf.Array)
        for total in (ours + theirs, theirs + ours, np.ones(3, np.float32) + ours):
            assert isinstance(total, wf.Array)
            np.testing.assert_array_equal(total, np.full(3, 2.0))
        assert isinstance(theirs + theirs, jax.Array)
        assert type(jax.tree.leaves([ours])[0]) is type(ours)
        assert type(wf.tree.leaves([theirs])[0]) is type(theirs)
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
            wf.numpy.sin(theirs)
        except RuntimeError as error:
            assert "deleted" in str(error).lower()
        else:
            raise AssertionError("a deleted array was read")
        use_weft()
        """)
    )


@in_each_order
def test_traces_of_both_can_be_open_at_once(start):
    run(
        start
        + textwrap.dedent("""
        def theirs(x):
            wf.jit(lambda v: wf.numpy.sin(v))(np.float32(0.5))
            return jnp.cos(x)

        def ours(x):
            jax.jit(lambda v: jnp.sin(v))(np.float32(0.5))
            return wf.numpy.cos(x)

        assert np.isclose(float(jax.jit(theirs)(0.5)), np.cos(0.5))
        assert np.isclose(float(jax.grad(theirs)(0.5)), -np.sin(0.5))
        assert np.isclose(float(wf.jit(ours)(0.5)), np.cos(0.5))
        assert np.isclose(float(wf.grad(ours)(0.5)), -np.sin(0.5))
        """)
    )


def test_numpy_arguments_before_and_after_jax_is_imported():
    """Until jax is there, jaxlib takes numpy arrays of jitted calls by itself; then we do."""
    run(
        textwrap.dedent("""
        import sys
        import numpy as np
        import weft as wf

        f = wf.jit(lambda x, y: x + y)
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
