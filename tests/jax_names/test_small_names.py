"""Small names of JAX that libraries need: signatures, layouts, tokens, maps over one mesh axis.

Invariant: the expected values are written down here, or computed by numpy.
"""

import inspect

import numpy as np
import pytest

import plait_jax

X = np.arange(12.0).reshape(4, 3)


def test_positions_and_names_of_arguments_are_read_from_each_other(jax, load):
    infer = load("jax._src.api_util").infer_argnums_and_argnames
    sig = inspect.signature(lambda a, b, *rest, c=0: a)
    assert infer(sig, None, None) == ((), ())
    assert infer(sig, (0, 1), None) == ((0, 1), ("a", "b"))
    assert infer(sig, None, "b") == ((1,), ("b",))
    assert infer(sig, 0, "c") == ((0,), ("c",))


def test_entries_of_a_prefix_are_spread(jax):
    tree = jax.tree.structure((1, {"a": [2, 3], "b": 4}))
    flatten = jax.api_util.flatten_axes
    assert flatten("in_axes", tree, 0) == [0] * 4
    assert flatten("in_axes", tree, (1, {"a": None, "b": 2})) == [1, None, None, 2]
    kws = jax.tree.structure(((1, 2), {"k": 3}))
    assert flatten("in_axes", kws, (None, 1), kws=True) == [None, 1, 0]
    with pytest.raises(ValueError, match="in_axes"):
        flatten("in_axes", tree, (1, 2, 3))


def test_dtypes(jax, load):
    assert load("jax._src.api")._dtype(np.float32(1)) == np.float32
    to_complex = load("jax._src.dtypes").to_complex_dtype
    assert to_complex(np.float64) == np.complex128 and to_complex(np.float32) == np.complex64


def test_names_of_axes(jax):
    seen = []

    def f(x):
        seen.append(jax.core.unsafe_get_axis_names_DO_NOT_USE())
        return x

    f(1.0)
    jax.vmap(jax.vmap(f, axis_name="j"), axis_name="i")(X)
    assert seen[0] == [] and set(seen[1]) == {"i", "j"}


def test_layouts_change_no_value(jax):
    layout = jax.experimental.layout.Layout((1, 0))
    assert layout.major_to_minor == (1, 0)
    here = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    assert jax.experimental.layout.Format(layout, here) is here
    keep = jax.experimental.layout.with_layout_constraint
    assert jax.jit(lambda x: keep(x, layout) * 2)(X).tolist() == (2 * X).tolist()
    assert "jax.experimental.layout.with_layout_constraint" in plait_jax.report().names


def test_tokens_order_nothing_and_pass(jax):
    def f(x):
        token = jax.lax.create_token(x)
        token = jax.lax.after_all(token, jax.lax.create_token())
        return jax.lax.optimization_barrier((x * 2, token))[0]

    assert jax.jit(f)(3.0) == 6.0 and jax.grad(f)(3.0) == 2.0


def test_a_linear_primitive_is_transposed_without_operands(jax):
    from jax.interpreters import ad, batching, mlir

    p = jax.extend.core.Primitive("tripled")
    p.def_impl(lambda x: 3 * x)
    p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(p, mlir.lower_fun(lambda x: 3 * x, multiple_results=False))
    ad.deflinear(p, lambda ct: [p.bind(ct)])
    batching.defvectorized(p)
    assert jax.grad(lambda x: p.bind(x) ** 2)(2.0) == 36.0
    assert jax.jvp(p.bind, (2.0,), (1.0,)) == (6.0, 3.0)


def test_a_function_over_one_axis_of_the_mesh(jax):
    n = 2 if len(jax.devices()) > 1 else 1
    mesh = jax.make_mesh((n,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    with jax.set_mesh(mesh):
        total = jax.smap(
            lambda x, y: (x + y, jax.lax.psum(x.sum(0), "i")),
            in_axes=(0, None), out_axes=(0, None), axis_name="i",
        )  # fmt: skip
        got, whole = total(X, X[0])
        np.testing.assert_allclose(got, X + X[0])
        np.testing.assert_allclose(whole, X.sum(0))
        turn = jax.smap(in_axes=0, out_axes=-1, axis_name="i")(lambda x: x.T)
        np.testing.assert_allclose(turn(X), X.T)
        f = lambda x: turn(x)[0].sum()  # noqa: E731
        np.testing.assert_allclose(jax.grad(f)(X), np.eye(3)[[0] * 4])


def test_types_say_how_arguments_are_divided_over_one_axis(jax):
    """Where `in_axes` is omitted; of an axis that types do not speak of nothing is known."""
    n = len(jax.devices())
    over = {"x2": lambda v: v * 2, "rows": lambda v: v - v[:1]}
    x = np.arange(4.0 * n, dtype=np.float32)
    mesh = jax.make_mesh((n,), ("i",), axis_types=(jax.sharding.AxisType.Explicit,))
    with jax.set_mesh(mesh):
        mapped = {k: jax.smap(f, out_axes=0, axis_name="i") for k, f in over.items()}
        divided = jax.device_put(x, jax.P("i"))
        for way in (lambda f: f, jax.jit):
            np.testing.assert_array_equal(way(mapped["x2"])(divided), x * 2)
            pieces = x.reshape(n, 4)
            want = (pieces - pieces[:, :1]).ravel()
            np.testing.assert_array_equal(way(mapped["rows"])(divided), want)
    mesh = jax.make_mesh((n,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    with jax.set_mesh(mesh), pytest.raises(TypeError, match="in_specs|in_axes"):
        jax.smap(over["x2"], out_axes=0, axis_name="i")(x)


def test_arrays_are_divided_anew(jax):
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Explicit,))
    with jax.set_mesh(mesh):
        y = jax.jit(lambda x: jax.reshard(x, jax.P("i")))(X)
    np.testing.assert_array_equal(y, X)


def test_profiles_are_written(jax, tmp_path):
    f = jax.jit(lambda x: x * 3)
    with jax.profiler.trace(tmp_path), jax.profiler.StepTraceAnnotation("train", step_num=1):
        assert jax.profiler.annotate_function(f, name="f")(2.0) == 6.0
    assert [*tmp_path.rglob("*.xplane.pb")]
    assert jax.profiler.ProfileData.from_file(str([*tmp_path.rglob("*.xplane.pb")][0])).planes
    assert jax.profiler.device_memory_profile()[:2] == b"\x1f\x8b"
