"""`Primitive`: evaluation, types and lowering, where nothing but the core is there.

Invariant: results are compared with numpy; rules that others look up are tested in tests/jax_names.
"""

import numpy as np
import pytest

X = np.array([0.5, -1.25, 2.5], "float32")


@pytest.fixture
def fused(jax):
    """x * y + z, lowered by a function that is traced."""
    p = jax.extend.core.Primitive("fused")
    p.def_impl(lambda x, y, z, *, scale: np.asarray(x) * np.asarray(y) * scale + np.asarray(z))
    p.def_abstract_eval(lambda x, y, z, *, scale: jax.core.ShapedArray(x.shape, x.dtype))
    say = lambda x, y, z, *, scale: x * y * scale + z
    mlir = jax.interpreters.mlir
    mlir.register_lowering(p, mlir.lower_fun(say, multiple_results=False))
    return p


def test_the_implementation_is_called_with_arrays(jax, fused):
    got = fused.bind(X, X, X, scale=2.0)
    assert isinstance(got, jax.Array)
    np.testing.assert_allclose(got, X * X * 2 + X, rtol=1e-6)


def test_the_lowering_is_compiled(jax, fused):
    f = jax.jit(lambda x: fused.bind(x, x, x, scale=3.0))
    np.testing.assert_allclose(f(X), X * X * 3 + X, rtol=1e-6)
    (eqn,) = jax.make_jaxpr(lambda x: fused.bind(x, x, x, scale=3.0))(X).eqns
    assert eqn.primitive is fused and eqn.params == {"scale": 3.0}
    assert "fused" in repr(eqn)


def test_parameters_that_can_not_be_hashed(jax):
    p = jax.extend.core.Primitive("weighted")
    p.def_impl(lambda x, *, weights: sum(w * x for w in weights))
    p.def_abstract_eval(lambda x, *, weights: x)
    mlir = jax.interpreters.mlir
    mlir.register_lowering(p, mlir.lower_fun(p.impl, multiple_results=False))
    for run in (lambda f: f, jax.jit):
        got = run(lambda x: p.bind(x, weights=[1.0, 2.0]))(X)
        np.testing.assert_allclose(got, 3 * X, rtol=1e-6)


def test_many_results(jax):
    p = jax.extend.core.Primitive("both")
    p.multiple_results = True
    p.def_impl(lambda x: [np.sin(x), np.cos(x)])
    p.def_abstract_eval(lambda x: [x, x])
    mlir = jax.interpreters.mlir
    mlir.register_lowering(p, mlir.lower_fun(lambda x: [jax.numpy.sin(x), jax.numpy.cos(x)]))
    for run in (lambda f: f, jax.jit):
        s, c = run(lambda x: p.bind(x))(X)
        np.testing.assert_allclose(s, np.sin(X), rtol=1e-5)
        np.testing.assert_allclose(c, np.cos(X), rtol=1e-5)


def test_a_rule_that_writes_mlir(jax):
    """As a library of kernels does it, with the bindings that jaxlib has."""
    from jaxlib.mlir.dialects import stablehlo

    p = jax.extend.core.Primitive("negated_sine")
    p.def_impl(lambda x: jax.interpreters.xla.apply_primitive(p, x))
    p.impl = jax.interpreters.xla.apply_primitive
    p.def_abstract_eval(lambda x: jax.core.ShapedArray(x.shape, x.dtype))

    def lower(ctx, x):
        assert [a.shape for a in ctx.avals_in] == [(3,)] == [a.shape for a in ctx.avals_out]
        return [stablehlo.negate(stablehlo.sine(x))]

    jax.interpreters.mlir.register_lowering(p, lower)
    np.testing.assert_allclose(jax.jit(p.bind)(X), -np.sin(X), rtol=1e-5)
    np.testing.assert_allclose(p.bind(X), -np.sin(X), rtol=1e-5)


def test_a_rule_of_another_platform_does_not_count(jax, fused):
    def lower(*args, **params):
        raise AssertionError("the rule of another platform")

    jax.interpreters.mlir.register_lowering(fused, lower, platform="tpu")
    np.testing.assert_allclose(jax.jit(lambda x: fused.bind(x, x, x, scale=1.0))(X), X * X + X)


def test_a_primitive_without_lowering_says_so(jax):
    p = jax.extend.core.Primitive("unsaid")
    p.def_impl(lambda x: x)
    p.def_abstract_eval(lambda x: x)
    assert float(p.bind(3.0)) == 3.0
    with pytest.raises(Exception, match="no 'lower' rule for primitive 'jax.unsaid"):
        jax.jit(p.bind)(X)


def test_primitives_of_plait_are_one_object_each(jax):
    assert jax.lax.add_p is jax.extend.core.primitives.add_p
    (eqn,) = jax.make_jaxpr(lambda x: jax.numpy.maximum(x, x))(X).eqns
    assert eqn.primitive is jax.lax.max_p
    np.testing.assert_allclose(jax.lax.sub_p.bind(X, 2 * X), -X)
    with pytest.raises(AttributeError, match="after_all"):
        jax.lax.after_all_p.bind(X)
    with pytest.raises(AttributeError, match="own primitive"):
        jax.interpreters.mlir.register_lowering(jax.lax.add_p, lambda *a: None)


def test_primitives_that_plait_says_with_others_are_bound(jax):
    """With the parameters that JAX's have; what they do is numpy's."""
    lax, two = jax.lax, X.reshape(1, -1)
    cases = [
        (lax.square_p.bind(X), X * X),
        (lax.exp2_p.bind(X, accuracy=None), 2**X),
        (lax.copy_p.bind(X), X),
        (lax.mulhi_p.bind(np.uint32(2**31), np.uint32(6)), 3),
        (lax.split_p.bind(X, sizes=(1, X.size - 1), axis=0)[1], X[1:]),
        (lax.stack_p.bind(X, X, axis=1), np.stack([X, X], 1)),
        (lax.unstack_p.bind(two, axis=0)[0], X),
        (lax.tile_p.bind(X, reps=(2,)), np.tile(X, 2)),
        (lax.top_k_p.bind(X, k=1, axis=0)[0], [X.max()]),
    ]
    for got, want in cases:
        np.testing.assert_allclose(got, want, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(lax.square_p.bind)(X), X * X)
    assert lax.split_p.multiple_results and not lax.square_p.multiple_results
    assert lax.square_p is jax.extend.core.primitives.square_p


def test_what_is_said_with_others_has_derivatives(jax):
    pytest.importorskip("plait_autodiff")
    pytest.importorskip("plait_batching")
    np.testing.assert_allclose(jax.vmap(jax.grad(jax.lax.square_p.bind))(X), 2 * X)


def test_parameters_that_say_nothing_are_taken(jax):
    lax = jax.lax
    cases = [
        (lax.exp_p.bind(X, accuracy=None), np.exp(X)),
        (lax.mul_p.bind(X, X, out_dtype=None), X * X),
        (lax.reduce_sum_p.bind(X, axes=(0,), out_sharding=None), X.sum()),
        (lax.conj_p.bind(X + 0j, input_dtype=np.dtype("complex64")), X),
        (lax.reshape_p.bind(X, new_sizes=(X.size, 1), dimensions=None, sharding=None), X[:, None]),
        (lax.sort_p.bind(X, dimension=0, is_stable=True, num_keys=1)[0], np.sort(X)),
    ]
    for got, want in cases:
        np.testing.assert_allclose(got, want, rtol=1e-6)
    with pytest.raises(TypeError, match="accuracy"):
        lax.exp_p.bind(X, accuracy=3)


def test_a_subclass_defines_its_rules_as_methods(jax):
    class Doubled(jax.extend.core.Primitive):
        def impl(self, x, *, times):
            return np.asarray(x) * 2 * times

        def abstract_eval(self, x, *, times):
            return x, jax.core.no_effects

    p = Doubled("doubled")
    lower = jax.interpreters.mlir.lower_fun(lambda x, times: x * 2 * times, multiple_results=False)
    jax.interpreters.mlir.register_lowering(p, lower)
    for run in (lambda f: f, jax.jit):
        np.testing.assert_allclose(run(lambda x: p.bind(x, times=3))(X), 6 * X)


def test_the_abstract_evaluation_of_a_primitive_can_be_called(jax):
    p = jax.extend.core.Primitive("same")
    p.def_abstract_eval(lambda x: x)
    aval = jax.core.ShapedArray((2,), np.dtype("float32"))
    assert p.abstract_eval(aval) == (aval, set())


def test_trees_are_taken_apart_by_the_inner_registry(jax):
    from jax._src.tree_util import _registry

    for tree in ((1, (2, 3)), [1, None], {"b": 1, "a": [2]}):
        entry = _registry[type(tree)]
        children, around = entry.to_iter(tree)
        assert list(children) == (list(tree) if type(tree) is not dict else [[2], 1])
        assert entry.from_iter(around, [0] * len(children)) == jax.tree.map(
            lambda _: 0, tree, is_leaf=lambda x: x is not tree
        )
    with pytest.raises(KeyError):
        _registry[int]


def test_a_primitive_without_rules_is_not_implemented(jax):
    p = jax.extend.core.Primitive("bare")
    for use in (p.bind, jax.jit(p.bind)):
        with pytest.raises(NotImplementedError):
            use(X)
    with pytest.raises(NotImplementedError, match=r"write bare.def_abstract_eval"):
        jax.jit(p.bind)(X)
    p.def_abstract_eval(lambda x: x)
    with pytest.raises(NotImplementedError):
        p.bind(X)
    p.def_impl(lambda x: 2 * np.asarray(x))  # after uses of the primitive
    np.testing.assert_array_equal(p.bind(X), 2 * X)
    p.def_impl(lambda x: 3 * np.asarray(x))
    np.testing.assert_array_equal(p.bind(X), 3 * X)


@pytest.mark.parametrize("many", [False, True])
def test_the_rule_for_types_returns_as_many_as_the_primitive_has(jax, many):
    p = jax.extend.core.Primitive("miscounted")
    p.multiple_results = many
    p.def_abstract_eval(lambda x: x if many else [x])
    with pytest.raises(ValueError, match="miscounted must return") as caught:
        jax.jit(p.bind)(X)
    assert f"multiple_results = {not many}" in str(caught.value)
