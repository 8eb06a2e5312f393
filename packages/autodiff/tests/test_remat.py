"""checkpoint in compiled programs, with Python's control flow, and with everything around it.

Invariant: memory is what the compiler counts, operations are counted in what it made; values are
compared with numpy and with finite differences.
"""

import gc
import re
import weakref

import numpy as np
import pytest

import plait
from plait import lax

pnp, keep = plait.numpy, plait.checkpoint_policies
rng = np.random.default_rng(0)


def compiled(f, *args):
    """(bytes of temporaries, optimised HLO, results)."""
    c = plait.jit(f).lower(*args).compile()
    return c.memory_analysis().temp_size_in_bytes, c.as_text(), c(*args)


def dots(hlo):
    return len(re.findall(r"= \S+ dot\(|__onednn|custom-call.*matmul", hlo))


# ---- compiled programs -----------------------------------------------------------------------


def dense(w, x):
    h = pnp.tanh(x @ w)
    h = pnp.sin(pnp.tanh(h @ w.T)) * h
    return h * pnp.exp(-h * h)


def attention(w, x):
    q, k, v = x @ w, x @ w.T, x
    s = q @ k.T
    s = pnp.exp(s - s.max(1, keepdims=True))
    return x + pnp.tanh((s / s.sum(1, keepdims=True)) @ v)


def convolution(w, x):
    k = w[:9, :1].reshape(1, 1, 3, 3)
    y = lax.conv(x.reshape(1, 1, *x.shape), k, (1, 1), "SAME").reshape(x.shape)
    return x + pnp.tanh(pnp.sin(y) * pnp.exp(-y * y))


NETS = {
    "dense": (dense, 6, (512, 32), 0.5),
    "attention": (attention, 4, (128, 32), 0.7),
    "convolution": (convolution, 6, (128, 32), 0.75),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", NETS)
def test_memory_of_unrolled_layers(name):
    """Layers one after the other, outside of loops: the compiler sees both computations of each.

    Without a form that survives, as with prevent_cse=False, it finds that they are one.
    """
    layer, depth, shape, share = NETS[name]
    ws = [pnp.asarray(rng.standard_normal((32, 32)).astype(np.float32) / 8) for _ in range(depth)]
    x = pnp.asarray(rng.standard_normal(shape).astype(np.float32))

    def loss(f):
        def of(ws, x):
            for w in ws:
                x = f(w, x)
            return (x * x).sum()

        return plait.grad(of)

    plain, _, want = compiled(loss(layer), ws, x)
    small, hlo, got = compiled(loss(plait.checkpoint(layer)), ws, x)
    merged, other, _ = compiled(loss(plait.checkpoint(layer, prevent_cse=False)), ws, x)
    assert small < share * plain
    assert small < share * merged
    assert hlo.count(" conditional(") == depth and " conditional(" not in other
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-4 * np.abs(np.asarray(w)).max())


def test_policies_of_unrolled_layers():
    """What is kept costs memory and saves work: between nothing and everything."""
    ws = [pnp.asarray(rng.standard_normal((32, 32)).astype(np.float32) / 8) for _ in range(6)]
    x = pnp.asarray(rng.standard_normal((512, 32)).astype(np.float32))

    def loss(policy):
        def of(ws, x):
            for w in ws:
                x = plait.checkpoint(dense, policy=policy)(w, x)
            return (x * x).sum()

        return compiled(plait.grad(of), ws, x)

    nothing, a, _ = loss(None)
    products, b, _ = loss(keep.dots_saveable)
    everything, c, _ = loss(keep.everything_saveable)
    assert nothing < products < everything
    assert dots(a) > dots(b) and dots(b) == dots(c)
    assert " conditional(" not in c  # there is nothing to compute again


@pytest.mark.feature("A25")
@pytest.mark.parametrize("name, each", [("attention", 4), ("convolution", 1)])
def test_products_that_are_done_again(name, each):
    """Of two layers with so many products each: as many forward, twice as many backward, and those
    that the policy does not keep again; what is kept takes memory."""
    layer, x = NETS[name][0], np.ones((8, 8), np.float32)
    w = np.ones((8 if name == "attention" else 9, 8), np.float32)

    def made(policy):
        f = plait.checkpoint(layer, policy=policy)
        size, hlo, _ = compiled(plait.grad(lambda w, x: (f(w, f(w, x)) ** 2).sum(), (0, 1)), w, x)
        return len(re.findall(r"= \S+ (?:dot|convolution)\(", hlo)), size

    nothing, small = made(None)
    products, large = made(keep.dots_saveable)
    assert (nothing, products) == (2 * 4 * each, 2 * 3 * each) and small < large
    if name == "convolution":  # which is no product to this policy
        assert made(keep.dots_with_no_batch_dims_saveable) == (nothing, small)


def test_forward_mode_and_plain_evaluation_cost_nothing():
    x = pnp.asarray(rng.standard_normal((8, 32)).astype(np.float32))
    w = pnp.asarray(rng.standard_normal((32, 32)).astype(np.float32))
    f = plait.checkpoint(dense)
    for g in (f, lambda w, x: plait.jvp(f, (w, x), (w, x))):
        assert "conditional" not in plait.jit(g).lower(w, x).compile().as_text()


def test_other_platforms_have_barriers():
    g = plait.jit(plait.grad(plait.checkpoint(lambda x: lax.sin(lax.sin(x)))))
    text = g.trace(np.float32(1)).lower(lowering_platforms=("cuda",)).as_text()
    assert "optimization_barrier" in text and "stablehlo.case" not in text


# ---- Python's control flow ---------------------------------------------------------------------


def branching(x, sin=lax.sin):
    y = sin(x)
    if y > 0:
        y = y * y
    while y < 1:
        y = y * 2
    return sin(y)


def test_python_branches_on_values():
    """Wherever it could without checkpoint; for other values it is traced again."""
    f = plait.checkpoint(branching)
    h = 1e-6
    for x in (0.5, -0.4, 1.3, 0.5):
        if np.sin(x) < 0:
            x = -x  # a negative y would never reach 1
        slope = (branching(x + h, np.sin) - branching(x - h, np.sin)) / (2 * h)
        np.testing.assert_allclose(plait.grad(f)(np.float64(x)), slope, rtol=1e-6)
        np.testing.assert_allclose(f(np.float64(x)), branching(x, np.sin), rtol=1e-12)
    nested = plait.checkpoint(lambda x: f(x) * x if x > 0 else x)
    assert float(plait.grad(nested)(-2.0)) == 1
    plait.check_grads(nested, (np.float64(0.5),), order=2)


def test_nothing_is_looked_at_where_there_is_no_value():
    f = plait.checkpoint(branching)
    with pytest.raises(plait.errors.ConcretizationError, match="jit of"):
        plait.jit(f)(np.float32(0.5))
    with pytest.raises(plait.errors.ConcretizationError, match="scan of"):
        lax.scan(lambda c, _: (f(c), None), np.float32(0.5), None, length=2)


def test_functions_that_look_at_nothing_are_traced_once():
    traced = [0]

    @plait.checkpoint
    def f(x):
        traced[0] += 1
        return lax.sin(x)

    for x in (1.0, 2.0, 3.0):
        plait.grad(f)(np.float32(x))
    assert traced[0] == 1


def test_static_arguments():
    f = plait.checkpoint(lambda x, how, n: getattr(lax, how)(x) * n, static_argnums=(1, -1))
    for how, slope in (("sin", np.cos(0.5)), ("cos", -np.sin(0.5))):
        for n in (2, 2.5):
            got = plait.grad(f)(np.float64(0.5), how, n)
            np.testing.assert_allclose(got, slope * n, rtol=1e-12)
    traced = [0]

    def counted(x, n):
        traced[0] += 1
        return x * n

    g = plait.checkpoint(counted, static_argnums=1)
    for n in (1, 1.0, True, 1):
        g(np.float32(2), n)
    assert traced[0] == 3
    for _ in range(2):  # what cannot be hashed is traced each time
        assert float(plait.grad(lambda x: g(x, np.array(3.0)))(1.0)) == 3.0
    assert traced[0] == 5
    h = plait.checkpoint(lambda x, d: x * d["a"][0], static_argnums=1)
    assert float(plait.grad(h)(2.0, {"a": [7]})) == 7.0
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'n'"):
        g(1.0)
    with pytest.raises(
        plait.PlaitError, match="names argument 2, and the function was called with 1"
    ):
        plait.checkpoint(lambda *xs: xs, static_argnums=2)(1.0)
    named = plait.checkpoint(lambda x, *, how, n=2: getattr(lax, how)(x) * n, static_argnames="how")
    np.testing.assert_allclose(plait.grad(lambda x: named(x, how="sin"))(0.5), 2 * np.cos(0.5))
    np.testing.assert_allclose(plait.grad(lambda x: named(x, how="cos", n=3))(0.0), 0)
    with pytest.raises(plait.PlaitError, match="static_argnames 'who' is not an argument"):
        plait.checkpoint(counted, static_argnames="who")
    with pytest.raises(plait.PlaitError, match="prevent_cse of checkpoint is 'no'"):
        plait.checkpoint(counted, prevent_cse="no")
    by_leaf = plait.checkpoint(lambda d: lax.sin(d["x"]), prevent_cse=({"x": True},))
    np.testing.assert_allclose(plait.grad(by_leaf)({"x": 0.5})["x"], np.cos(0.5), rtol=1e-6)


# ---- with everything around it -------------------------------------------------------------------


@plait.custom_vjp
def clipped(x):
    return lax.sin(x)


clipped.defvjp(
    lambda x: (lax.sin(x), plait.checkpoint_name(lax.cos(x), "slope")),
    lambda s, ct: (10 * ct * s,),
)


def test_custom_rules():
    """A rule is used, and what its forward pass names can be kept."""
    x = np.float64(0.4)
    f = lambda x: lax.sin(clipped(lax.sin(x)))  # noqa: E731
    want = np.cos(np.sin(np.sin(x))) * 10 * np.cos(np.sin(x)) * np.cos(x)
    policy = keep.save_only_these_names("slope")
    for p in (None, policy):
        g = plait.checkpoint(f, policy=p)
        np.testing.assert_allclose(plait.grad(g)(x), want, rtol=1e-12)
        np.testing.assert_allclose(plait.jit(plait.grad(plait.jit(g)))(x), want, rtol=1e-12)
    kept = [r.what for r in plait.saved_residuals(plait.checkpoint(f, policy=policy), x)]
    assert kept == ["named 'slope'", "the argument x"]


def test_loops_and_branches_inside():
    def f(x):
        x = lax.scan(lambda c, r: (lax.sin(c) * r, None), x, np.ones(3))[0]
        x = lax.cond(x > 0, lax.sin, lambda v: v, x)
        n = lax.while_loop(lambda k: k < 3, lambda k: k + 1, 0)
        return x * lax.fori_loop(0, 2, lambda i, v: lax.sin(v) + n, x)

    for policy in (None, keep.everything_saveable, lambda p, *a, **k: p.name == "core.sin"):
        plait.check_grads(plait.checkpoint(f, policy=policy), (np.float64(0.8),), order=1)


def test_nested_checkpoints():
    inner = plait.checkpoint(lambda x: lax.sin(lax.sin(x)), policy=keep.everything_saveable)
    outer = plait.checkpoint(lambda x: lax.sin(inner(lax.sin(x))))
    assert [r.what for r in plait.saved_residuals(outer, 1.0)] == ["the argument x"]
    kept = plait.checkpoint(lambda x: lax.sin(inner(x)), policy=keep.everything_saveable)
    assert len(plait.saved_residuals(kept, 1.0)) == 3
    plait.check_grads(outer, (np.float64(0.4),), order=2)


def test_linear_programs_of_checkpoints():
    """What linearize returns can be applied, and transposed, more than once."""
    x = np.float64(0.3)
    f = plait.checkpoint(
        lambda x: lax.sin(lax.sin(x)), policy=lambda p, *a, **k: p.name == "core.sin"
    )
    slope = np.cos(np.sin(x)) * np.cos(x)
    y, push = plait.linearize(f, x)
    np.testing.assert_allclose(y, np.sin(np.sin(x)))
    for t in (1.0, 2.0):
        np.testing.assert_allclose(push(np.float64(t)), slope * t)
        np.testing.assert_allclose(plait.jit(push)(np.float64(t)), slope * t)
    np.testing.assert_allclose(plait.linear_transpose(push, x)(np.float64(3))[0], 3 * slope)


def test_what_acts_acts_once():
    seen = []

    @plait.checkpoint
    def f(x):
        y = plait.io_callback(lambda v: seen.append(float(v)) or v * 2, x, lax.stop_gradient(x))
        return lax.sin(lax.sin(x) * y)

    for g in (plait.grad(f), plait.jit(plait.grad(f))):
        seen.clear()
        got = g(np.float64(0.5))
        np.testing.assert_allclose(got, np.cos(np.sin(0.5)) * np.cos(0.5), rtol=1e-12)
        assert seen == [0.5]


def test_forward_rules_act_once():
    """What the forward rule of a custom function does is done in the forward pass alone."""
    seen = []

    def told(x):
        y = plait.io_callback(lambda v: seen.append(float(v)) or v * 2, x, x)
        return lax.sin(x), lax.cos(x) * y

    f = plait.custom_vjp(lax.sin)
    f.defvjp(told, lambda s, ct: (ct * s,))
    got = plait.jit(plait.grad(plait.checkpoint(lambda x: f(x * 3))))(np.float64(0.5))
    np.testing.assert_allclose(got, 3 * np.cos(1.5) * 3, rtol=1e-12)
    assert seen == [1.5]


def test_functions_are_not_kept_alive():
    def make():
        def f(x):
            return lax.sin(x) if x > 0 else x

        plait.grad(plait.checkpoint(f))(1.0)
        return weakref.ref(f)

    ref = make()
    gc.collect()
    assert ref() is None


def test_decorators():
    @plait.checkpoint
    def f(x):
        """Of f."""
        return lax.sin(x)

    @plait.checkpoint(policy=keep.dots_saveable, prevent_cse=False)
    def g(x):
        return lax.sin(x)

    assert f.__doc__ == "Of f." and f.__name__ == "f"
    np.testing.assert_allclose(plait.grad(g)(np.float64(1)), np.cos(1))
    with pytest.raises(plait.PlaitError, match="checkpoint needs a function, not 3"):
        plait.checkpoint(3)
