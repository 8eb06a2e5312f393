"""`Primitive` with rules for derivatives and for mapping, found in the registries.

Invariant: derivatives are compared with finite differences in double precision, mapping with a
loop over rows; Plait's own answer for the same function is no witness.
"""

import numpy as np
import pytest

import plait

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(2, 3, 4))


def primitive(jax, name, f, many=False):
    """One with an implementation, types and a lowering."""
    p = jax.extend.core.Primitive(name)
    p.multiple_results = many
    p.def_impl(f)
    p.def_abstract_eval(lambda x, *rest, **params: [x, x] if many else x)
    mlir = jax.interpreters.mlir
    mlir.register_lowering(p, mlir.lower_fun(f, multiple_results=many))
    return p


@pytest.fixture
def swirl(jax):
    """sin(x) * y, with every rule; its derivative goes through a linear primitive of its own."""
    jnp, ad, batching = jax.numpy, jax.interpreters.ad, jax.interpreters.batching
    swirl = primitive(jax, "swirl", lambda x, y: jnp.sin(x) * y)
    scaled = primitive(jax, "scaled", lambda t, factor: t * factor)

    def jvp(xs, ts):
        (x, y), (t, s) = xs, ts
        dots = []
        if not isinstance(t, ad.Zero):
            dots.append(scaled.bind(t, jnp.cos(x) * y))
        if not isinstance(s, ad.Zero):
            dots.append(scaled.bind(s, jnp.sin(x)))
        out = swirl.bind(x, y)
        return out, sum(dots[1:], dots[0]) if dots else ad.Zero.from_primal_value(out)

    ad.primitive_jvps[swirl] = jvp
    # only ever differentiated in what it is linear in
    ad.primitive_jvps[scaled] = lambda xs, ts: (
        scaled.bind(*xs),
        scaled.bind(ad.instantiate_zeros(ts[0]), xs[1]),
    )

    def transpose(ct, t, factor):
        assert ad.is_undefined_primal(t) and not ad.is_undefined_primal(factor)
        assert t.aval.shape == ct.shape
        return [scaled.bind(ct, factor), None]

    ad.primitive_transposes[scaled] = transpose

    def mapped(p):
        def rule(xs, dims):
            size = next(x.shape[d] for x, d in zip(xs, dims) if d is not batching.not_mapped)
            rows = [
                jnp.broadcast_to(x, (size, *x.shape)) if d is None else jnp.moveaxis(x, d, 0)
                for x, d in zip(xs, dims)
            ]
            return p.bind(*rows), 0

        return rule

    for p in (swirl, scaled):
        batching.primitive_batchers[p] = mapped(p)
    return swirl


def difference(f, x, t, h=1e-6):
    """The derivative of `f` at `x` along `t`, by a central difference."""
    return (np.asarray(f(x + h * t)) - np.asarray(f(x - h * t))) / (2 * h)


def sine(x, y):
    return np.sin(x) * y


@pytest.mark.parametrize("jitted", [False, True])
def test_forward_mode(jax, swirl, jitted):
    run = jax.jit if jitted else lambda f: f
    t, s = rng.normal(size=(2, 3, 4))
    out, dot = run(lambda *a: jax.jvp(swirl.bind, a[:2], a[2:]))(X, Y, t, s)
    np.testing.assert_allclose(out, sine(X, Y))
    want = difference(lambda x: sine(x, Y), X, t) + difference(lambda y: sine(X, y), Y, s)
    np.testing.assert_allclose(dot, want, rtol=1e-7)
    _, dot = run(lambda x, y, t: jax.jvp(lambda v: swirl.bind(v, y), (x,), (t,)))(X, Y, t)
    np.testing.assert_allclose(dot, difference(lambda x: sine(x, Y), X, t), rtol=1e-7)


@pytest.mark.parametrize("jitted", [False, True])
def test_reverse_mode_transposes(jax, swirl, jitted):
    run = jax.jit if jitted else lambda f: f
    f = lambda x, y: (swirl.bind(x, y) ** 2).sum()
    got = run(jax.grad(f, argnums=(0, 1)))(X, Y)
    loss = lambda x, y: (sine(x, y) ** 2).sum()
    for i in range(3):
        for j in range(4):
            t = np.zeros((3, 4))
            t[i, j] = 1
            np.testing.assert_allclose(got[0][i, j], difference(lambda x: loss(x, Y), X, t), 1e-5)
            np.testing.assert_allclose(got[1][i, j], difference(lambda y: loss(X, y), Y, t), 1e-5)


@pytest.mark.parametrize("axes", [(0, 0), (1, None), (None, 1), (1, 0), (-1, 0)])
def test_mapping(jax, swirl, axes):
    x, y = (X if a is not None else X[0] for a in axes)
    y = y.T if axes[1] == 0 and axes[0] in (1, -1) else y
    y = np.resize(y, (3,)) if axes == (1, None) else y
    x = np.resize(x, (3,)) if axes == (None, 1) else x
    size = next(v.shape[a] for v, a in zip((x, y), axes) if a is not None)
    row = lambda v, a, i: v if a is None else np.take(v, i, axis=a)
    want = np.stack([sine(row(x, axes[0], i), row(y, axes[1], i)) for i in range(size)])
    for run in (lambda f: f, jax.jit):
        np.testing.assert_allclose(run(jax.vmap(swirl.bind, axes))(x, y), want)


def test_derivatives_of_rows_and_rows_of_derivatives(jax, swirl):
    want = np.stack([np.cos(x) * y for x, y in zip(X, Y)])
    rows = jax.vmap(jax.grad(lambda x, y: swirl.bind(x, y).sum()))(X, Y)
    np.testing.assert_allclose(rows, want)
    whole = jax.grad(lambda x: jax.vmap(swirl.bind)(x, Y).sum())(X)
    np.testing.assert_allclose(whole, want)
    hess = jax.jacfwd(jax.grad(lambda x: swirl.bind(x, Y[0]).sum()))
    del jax.interpreters.ad.primitive_jvps[swirl]  # rules are asked for when they are needed
    with pytest.raises(plait.errors.MissingRule, match="no 'jvp' rule for primitive 'jax.swirl"):
        hess(X[0])


def test_mapping_with_the_axis(jax):
    p = primitive(jax, "row_number", lambda x: x)
    seen = []

    def rule(size, name, kind, xs, dims):
        seen.append((size, name, dims))
        return p.bind(*xs), dims[0]

    jax.interpreters.batching.axis_primitive_batchers[p] = rule
    np.testing.assert_array_equal(jax.vmap(p.bind, 1, 1, axis_name="i")(X), X)
    assert seen == [(4, "i", (1,))]
    q = primitive(jax, "row_again", lambda x: x)

    def fancy(axis, xs, dims):
        seen.append((axis.size, axis.name, dims))
        return q.bind(*xs), dims[0]

    jax.interpreters.batching.fancy_primitive_batchers[q] = fancy
    np.testing.assert_array_equal(jax.vmap(q.bind)(X), X)
    assert seen[1:] == [(3, None, (0,))]


def test_many_results(jax):
    jnp, ad, batching = jax.numpy, jax.interpreters.ad, jax.interpreters.batching
    p = primitive(jax, "sincos", lambda x: [jnp.sin(x), jnp.cos(x)], many=True)

    def jvp(xs, ts):
        s, c = p.bind(*xs)
        return [s, c], [ts[0] * c, -ts[0] * s]

    ad.primitive_jvps[p] = jvp
    batching.primitive_batchers[p] = lambda xs, dims: (p.bind(*xs), [dims[0]] * 2)
    f = lambda x: p.bind(x)[0] * 2 + p.bind(x)[1]
    grads = jax.vmap(jax.vmap(jax.grad(f)))(X)
    np.testing.assert_allclose(grads, 2 * np.cos(X) - np.sin(X))


def test_shorthands(jax):
    jnp, ad, batching = jax.numpy, jax.interpreters.ad, jax.interpreters.batching
    cube = primitive(jax, "cube", lambda x: x * x * x)
    ad.defjvp(cube, lambda t, x: 3 * x * x * t)
    batching.defvectorized(cube)
    np.testing.assert_allclose(jax.vmap(jax.vmap(jax.grad(cube.bind)))(X), 3 * X**2)
    twice = primitive(jax, "twice", lambda x: 2 * x)
    ad.deflinear2(twice, lambda ct, x: [2 * ct])
    np.testing.assert_allclose(jax.grad(lambda x: (twice.bind(x) ** 2).sum())(X), 8 * X)
    assert jnp.zeros(()).shape == ()


def test_a_rule_that_is_not_there_says_so(jax):
    p = primitive(jax, "bare", lambda x: x)
    for use, table in ((jax.grad(p.bind), "jvp"), (jax.vmap(p.bind), "batching")):
        with pytest.raises(plait.errors.MissingRule, match=f"no '{table}' rule for .*'jax.bare"):
            use(1.0 if table == "jvp" else X)


def test_programs_of_derivatives_are_read(jax):
    """The program of a gradient has JAX's names, and evaluates to what finite differences give."""
    f = lambda x: jax.numpy.tanh(x @ Y.T).sum()
    closed = jax.make_jaxpr(jax.grad(f))(X)
    assert {"tanh", "dot_general"} <= {e.primitive.name for e in closed.eqns}
    (got,) = jax.core.eval_jaxpr(closed.jaxpr, closed.consts, X)
    t = rng.normal(size=X.shape)
    want = difference(lambda x: np.tanh(x @ Y.T).sum(), X, t)
    np.testing.assert_allclose((np.asarray(got) * t).sum(), want, rtol=1e-6)


def test_a_jaxpr_that_closes_over_a_tracer_is_differentiated(jax):
    def f(x):
        closed = jax.make_jaxpr(lambda y: x * y)(1.0)
        return jax.core.eval_jaxpr(closed.jaxpr, closed.consts, jax.numpy.sin(x))[0]

    want = difference(lambda x: x * np.sin(x), np.float64(0.7), 1.0)
    np.testing.assert_allclose(jax.grad(f)(0.7), want, rtol=1e-8)
    rows = jax.vmap(f)(X[0])
    np.testing.assert_allclose(rows, X[0] * np.sin(X[0]))


def test_what_is_known_is_computed_and_the_rest_is_a_jaxpr(jax):
    pe, lu = jax.interpreters.partial_eval, jax.extend.linear_util

    def f(x, *, y):
        return {"known": jax.numpy.sin(x), "both": jax.numpy.sin(x) * y}

    flat, tree = jax.tree_util.tree_flatten(((X,), {"y": Y}))
    fun, out_tree = jax.api_util.flatten_fun(lu.wrap_init(f), tree)
    late = pe.PartialVal.unknown(jax.core.ShapedArray(Y.shape, Y.dtype))
    jaxpr, outs, consts = pe.trace_to_jaxpr_nounits(fun, [pe.PartialVal.known(flat[0]), late])
    found = jax.tree_util.tree_unflatten(out_tree(), outs)
    assert [pval[0] is None for pval in outs] == [False, True]
    np.testing.assert_allclose(found["known"][1], np.sin(X))
    assert late.get_aval().shape == Y.shape and not late.is_known() and late.get_known() is None
    assert found["known"].get_aval().shape == X.shape
    (got,) = jax.core.eval_jaxpr(jaxpr, consts, Y)
    np.testing.assert_allclose(got, np.sin(X) * Y)
    fun, out_tree = jax.api_util.flatten_fun_nokwargs(
        lu.wrap_init(lambda x, y: [x, (y,)]), jax.tree_util.tree_structure((X, Y))
    )
    assert len(fun.call_wrapped(X, Y)) == 2
    assert out_tree() == jax.tree_util.tree_structure([0, (1,)])
