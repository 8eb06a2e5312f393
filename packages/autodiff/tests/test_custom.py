"""Custom rules: what rules are told and may return, how often they run, and what is refused.

Invariant: a rule that is wrong on purpose shows that it was used; values are checked against
derivatives written out, calls are counted by callbacks.
"""

import functools

import numpy as np
import pytest

import plait
from plait import lax
from plait.ext import Primitive, lower_rules
from plait.ext.errors import MissingRule, TreeMismatch, TypeRule, UndefinedRule
from plait_autodiff import (
    CustomPrimal,
    SymbolicZero,
    check_grads,
    checkpoint,
    custom_jvp,
    custom_vjp,
    custom_vjp_primal_tree_values,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    value_and_grad,
    vjp,
)
from plait_autodiff.ext import jvp_rules

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


def scanned(f):
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0]


WAYS = {
    "plain": lambda f: f,
    "jit": plait.jit,
    "scan": scanned,
    "while": lambda f: lambda x: lax.fori_loop(0, 1, lambda i, c: f(c), x),
    "cond": lambda f: lambda x: lax.cond(x.sum() > -100, f, lambda y: y, x),
    "checkpoint": checkpoint,
    "jit of checkpoint of scan": lambda f: plait.jit(checkpoint(scanned(f))),
}

# ---- symbolic zeros --------------------------------------------------------------------------


def two_way(seen):
    """x * y * z whose rule notes which tangents are symbolic."""

    @custom_jvp
    def f(x, y, n):
        return x * y * n

    def rule(primals, tangents):
        x, y, n = primals
        seen.append([type(t) is SymbolicZero for t in tangents])
        tx, ty, tn = tangents
        assert tn.dtype == plait.float0 and tn.shape == n.shape
        out = f(x, y, n)
        parts = [t * o * n for t, o in ((tx, y), (ty, x)) if type(t) is not SymbolicZero]
        return out, sum(parts) if parts else SymbolicZero(out.aval)

    f.defjvp(rule, symbolic_zeros=True)
    return f


@pytest.mark.feature("A18")
def test_symbolic_zeros_have_types():
    """A symbolic zero has the type of what it belongs to; those of integers have dtype float0."""
    zero = SymbolicZero(f32([[1.0]]).aval)
    assert (zero.shape, zero.ndim, zero.dtype) == ((1, 1), 2, np.float32)
    assert zero.aval is not SymbolicZero(f32(1.0).aval).aval
    assert SymbolicZero(pnp.arange(3).aval).dtype == plait.float0


@pytest.mark.feature("A18")
def test_rules_of_one_result_return_one():
    """A rule that returns a list for a primitive with one result is told so."""
    once = Primitive("testing.once", lambda x: x)
    lower_rules.rule(once)(lambda e, xs, ins, outs: xs[0])
    jvp_rules.rule(once)(lambda xs, ts: ([once.bind(*xs)], [ts[0]]))
    with pytest.raises(TypeRule, match="returned a list, and testing.once has one result"):
        jvp(lambda x: once(x), (f32(1),), (f32(1),))
    assert grad(lambda x: lax.sin(plait.random.gamma(plait.random.key(0), x)))(2.0).shape == ()


@pytest.mark.parametrize("way", WAYS)
def test_rules_are_told_of_zeros(way):
    seen = []
    f, n = two_way(seen), np.int32(3)
    g = WAYS[way](lambda x: f(x, pnp.asarray(np.float32(2)), n))
    assert jvp(g, (f32(5),), (f32(1),))[1].item() == 6
    assert grad(g)(f32(5)).item() == 6
    assert seen and all(s == [False, True, True] for s in seen)
    del seen[:]
    h = WAYS[way](lambda y: f(f32(7), y, n))
    assert grad(h)(f32(5)).item() == 21
    assert seen and all(s == [True, False, True] for s in seen)


def test_a_tangent_that_is_zero_stays_so():
    """What a rule says is zero is not varying from then on."""
    seen = []
    f = two_way(seen)
    still = custom_jvp(lambda x: x)
    still.defjvp(lambda p, t: (p[0], SymbolicZero(p[0].aval)), symbolic_zeros=True)
    assert jvp(lambda x: f(still(x), f32(2), 3), (f32(1),), (f32(1),))[1].item() == 0
    assert all(s == [True, True, True] for s in seen)
    none = custom_jvp(lambda x: x)
    none.defjvp(lambda p, t: (p[0], None))
    assert grad(plait.jit(lambda x: none(x) + x))(f32(1)).item() == 1


def told_both(seen, **options):
    """(x * y, sin x), whose rules note what varies and which cotangents are zero."""

    @custom_vjp
    def f(x, y):
        return x * y, lax.sin(x)

    def fwd(x, y):
        assert type(x) is CustomPrimal and type(y) is CustomPrimal
        seen.append(("fwd", x.perturbed, y.perturbed))
        return (x.value * y.value, lax.sin(x.value)), (x.value, y.value)

    def bwd(residuals, cts):
        (x, y), (c1, c2) = residuals, cts
        seen.append(("bwd", type(c1) is SymbolicZero, type(c2) is SymbolicZero))
        zero = SymbolicZero(x.aval)
        gx = [zero if type(c1) is SymbolicZero else c1 * y]
        gx += [zero if type(c2) is SymbolicZero else c2 * lax.cos(x)]
        gx = [g for g in gx if type(g) is not SymbolicZero]
        return sum(gx) if gx else zero, zero if type(c1) is SymbolicZero else c1 * x

    f.defvjp(fwd, bwd, symbolic_zeros=True, **options)
    return f


@pytest.mark.feature("A28")
@pytest.mark.parametrize("way", [w for w in WAYS if w not in ("while", "cond")])
def test_pullbacks_are_told_of_zeros(way):
    """Forward rules are told what varies, backward ones which cotangents are zero; checkpointed
    too, with the same results."""
    for options in ({}, {"optimize_remat": True}):
        seen = []
        f = told_both(seen, **options)
        g = WAYS[way](lambda x: f(x, f32(3))[0])
        assert grad(g)(f32(2)).item() == 3
        assert ("fwd", True, False) in seen and ("fwd", True, True) not in seen
        if way in ("plain", "jit", "checkpoint"):
            assert ("bwd", False, True) in seen
        del seen[:]
        h = WAYS[way](lambda y: f(f32(2), y)[0] * y)
        assert grad(h)(f32(5)).item() == 20
        assert hessian(h)(f32(5)).item() == 4
        both = grad(lambda x, y: sum(f(x, y)), (0, 1))(f32(2), f32(3))
        np.testing.assert_allclose(both, [3 + np.cos(2), 2], rtol=1e-6)


# ---- integers --------------------------------------------------------------------------------


@pytest.mark.feature("A08")
def test_integers_in_rules():
    """Integers have float0 tangents, and float0 or None as cotangents."""
    zero = np.zeros((), plait.float0)

    @custom_jvp
    def f(x, n):
        return x * n, n + 1

    @f.defjvp
    def _(primals, tangents):
        (x, n), (t, tn) = primals, tangents
        assert tn.dtype == plait.float0
        return f(x, n), (t * n, tn)

    n = np.int32(3)
    out, dot = jvp(f, (f32(2), n), (f32(1), zero))
    assert (out[0].item(), out[1].item(), dot[0].item()) == (6, 4, 3)
    assert dot[1].dtype == plait.float0
    for ct_of_n in (None, zero):
        g = custom_vjp(lambda x, n: (x * n, n + 1))

        def bwd(n, cts, ct_of_n=ct_of_n):
            assert cts[1].dtype == plait.float0
            return cts[0] * n, ct_of_n

        g.defvjp(lambda x, n: ((x * n, n + 1), n), bwd)
        (y, m), pull = vjp(g, f32(2), n)
        ct, ct_n = pull((f32(1), zero))
        assert (y.item(), m.item(), ct.item(), ct_n.dtype) == (6, 4, 3, plait.float0)
        assert plait.jit(grad(lambda x: g(x, n)[0]))(f32(2)).item() == 3  # noqa: B023
    ints = custom_jvp(lambda n: n * 2)
    ints.defjvp(lambda p, t: (ints(p[0]), t[0]))
    assert jvp(ints, (n,), (zero,))[1].dtype == plait.float0


# ---- how often rules run ---------------------------------------------------------------------


def counted(calls, name, f):
    """`f` of an array, by a callback that counts how often it is called."""

    def host(x):
        calls.append(name)
        return np.asarray(f(np.asarray(x)), np.float32)

    return lambda x: plait.pure_callback(host, plait.ShapeDtypeStruct(x.shape, np.float32), x)


def opaque(calls):
    """sin, whose forward rule is counted apart from the function itself."""
    f = custom_vjp(counted(calls, "fun", np.sin))

    def fwd(x):
        both = plait.pure_callback(
            lambda x: (calls.append("fwd"), np.float32([np.sin(x), np.cos(x)]))[1],
            plait.ShapeDtypeStruct((2, *x.shape), np.float32),
            x,
        )
        return both[0], both[1]

    f.defvjp(fwd, lambda r, ct: (r * ct,), optimize_remat=True)
    return f, fwd


@pytest.mark.feature("A26")
@pytest.mark.parametrize("outer", [lambda f: f, plait.jit], ids=["eager", "jit"])
def test_forward_rules_run_once_under_checkpoint(outer):
    """Where residuals are not kept the function is applied, not its rule."""
    calls = []
    f, fwd = opaque(calls)
    x = f32(0.5)
    np.testing.assert_allclose(plait.jit(lambda x: fwd(x)[0])(x), np.sin(0.5), rtol=1e-6)
    np.testing.assert_allclose(plait.jit(fwd)(x)[0], f(x), rtol=1e-6)
    del calls[:]
    y, g = outer(value_and_grad(checkpoint(lambda x: f(x) * 2.0)))(x)
    np.testing.assert_allclose([y, g], [2 * np.sin(0.5), 2 * np.cos(0.5)], rtol=1e-6)
    assert calls == ["fun", "fwd"]
    del calls[:]
    with plait.config(checks=False):  # which compares the rule's results with the function's
        outer(value_and_grad(f))(x)
    assert calls == ["fwd"]
    del calls[:]
    outer(checkpoint(f))(x)
    assert calls == ["fun"]


@pytest.mark.feature("A27")
def test_forward_rules_may_branch():
    f = custom_vjp(lambda x: abs(x))
    fwd = lambda x: (x, {"pos": x}) if x > 0 else (-x, None)  # noqa: E731
    f.defvjp(fwd, lambda r, ct: (-ct if r is None else ct,), optimize_remat=True)
    assert (grad(f)(f32(3)).item(), grad(f)(f32(-3)).item()) == (1, -1)
    assert grad(lambda x: grad(f)(x) * x)(f32(-3)).item() == -1


@pytest.mark.feature("A29")
@pytest.mark.parametrize("way", ["plain", "jit", "checkpoint"])
def test_derivatives_of_derivatives(way):
    def function(**options):
        f = custom_vjp(lambda x: lax.sin(x) * x)
        f.defvjp(
            lambda x: (f(x), x),
            lambda x, ct: (ct * (lax.cos(x) * x + lax.sin(x)),),
            **options,
        )
        return WAYS[way](f)

    f, g = function(), function(optimize_remat=True)
    x = 0.7
    second = 2 * np.cos(x) - x * np.sin(x)
    third = -3 * np.sin(x) - x * np.cos(x)
    for h in (f, g):
        ways = hessian(h), grad(grad(h)), jacfwd(grad(h)), jacfwd(jacrev(h))
        for d in ways if way == "plain" else ways[:2]:
            np.testing.assert_allclose(d(f32(x)), second, rtol=1e-5)
        if way != "checkpoint":
            np.testing.assert_allclose(grad(grad(grad(h)))(f32(x)), third, rtol=1e-5)
    if way == "plain":
        check_grads(g, (np.float64(x),), order=3)


@pytest.mark.feature("A31")
def test_two_arguments_under_checkpoint():
    f = custom_vjp(lambda x, y: lax.sin(x) * y)
    f.defvjp(
        lambda x, y: (f(x, y), (lax.cos(x), lax.sin(x), y)),
        lambda r, ct: (r[0] * ct * r[2], r[1] * ct),
        optimize_remat=True,
    )
    for g in (f, checkpoint(f), plait.jit(f)):
        np.testing.assert_allclose(grad(g)(3.2, 1.0), np.cos(3.2), rtol=1e-6)
        np.testing.assert_allclose(grad(g, 1)(3.2, 1.0), np.sin(3.2), rtol=1e-4)


# ---- arguments -------------------------------------------------------------------------------


@pytest.mark.feature("A32")
def test_keyword_only_parameters():
    for custom in (custom_jvp, custom_vjp):
        f = custom(lambda x, y=2.0, *, kw=True: x * y if kw else x)
        if custom is custom_jvp:
            f.defjvp(lambda p, t: (p[0] * 2, t[0] * 2))
        else:
            f.defvjp(lambda x, y=2.0: (x * y, y), lambda y, ct: (ct * y, None)[:2])
        assert f(1.0).item() == 2
        assert grad(lambda x, f=f: f(x) if custom is custom_jvp else f(x, 2.0))(1.0).item() == 2  # noqa: B023
        message = r"keyword arguments \(kw\) of .* have no position"
        with pytest.raises(TypeError, match=message):
            f(1.0, kw=False)
    g = custom_jvp(lambda x, y: x * y)
    g.defjvp(lambda p, t: (g(*p), t[0] * p[1] + p[0] * t[1]))
    assert grad(lambda x: g(y=x, x=3.0))(2.0).item() == 3


def test_static_arguments():
    f = custom_vjp(lambda kind, x: getattr(lax, kind)(x), nondiff_argnums=(0,))
    f.defvjp(lambda kind, x: (f(kind, x), x), lambda kind, x, ct: (ct * len(kind),))
    assert plait.jit(grad(lambda x: f("sin", x) + f("tanh", x)))(0.0).item() == 7
    with pytest.raises(TypeRule, match="has a static argument 3"):
        g = custom_jvp(lambda x: x, nondiff_argnums=3)
        g.defjvp(lambda p, t: (p, t))
        g(1.0)


@pytest.mark.parametrize("custom", [custom_jvp, custom_vjp])
def test_static_arguments_by_name(custom):
    """Rules get static arguments first, in the order of the function, however they are given."""
    seen = []

    def ten(kind, scale, ct):
        seen.append((kind, scale))
        return 10.0 * ct

    for static in (
        {"nondiff_argnums": (2, 0)},
        {"nondiff_argnames": ("scale", "kind")},
        {"nondiff_argnums": -1, "nondiff_argnames": "kind"},
    ):
        f = custom(lambda kind, x, scale: x * scale, **static)
        if custom is custom_jvp:
            f.defjvp(lambda kind, scale, p, t: (p[0] * scale, ten(kind, scale, t[0])))
        else:
            f.defvjp(
                lambda kind, x, scale: (x * scale, None),
                lambda kind, scale, _, ct: (ten(kind, scale, ct),),
            )
        assert grad(lambda x, f=f: f("a", x, 3))(1.0).item() == 10
        assert plait.jit(grad(lambda x, f=f: f(scale=3, x=x, kind="a")))(1.0).item() == 10
    assert set(seen) == {("a", 3)}
    with pytest.raises(TypeRule, match="nondiff_argnames names 'who', which is not a positional"):
        custom(lambda x, *, who: x, nondiff_argnames="who")


# ---- errors ----------------------------------------------------------------------------------


WRONG_JVPS = {
    "count": (lambda p, t: p[0], TypeError, "must return a pair"),
    "tree": (lambda p, t: (p[0], (t[0], t[0])), TypeError, "another structure"),
    "shape": (lambda p, t: (p[0], pnp.stack([t[0]] * 2)), TypeError, r"f32\[2\].*f32\[\]"),
    "dtype": (lambda p, t: (p[0], t[0].astype("float16")), TypeError, r"f16\[\].*f32\[\]"),
}
WRONG_VJPS = {
    "count": (lambda x: (x, None), lambda r, ct: (ct, ct), TypeError, "tuple of 1 cotangents"),
    "pair": (lambda x: x, lambda r, ct: (ct,), TypeError, "must return a pair"),
    "tree": (lambda x: (x, None), lambda r, ct: ([ct],), TypeError,
             "as the cotangent of a value of type f32"),
    "shape": (lambda x: (x, None), lambda r, ct: (pnp.stack([ct] * 2),), TypeError,
              r"f32\[2\].*f32\[\]"),
    "dtype": (lambda x: (x, None), lambda r, ct: (ct.astype("complex64"),), TypeError,
              r"c64\[\].*f32\[\]"),
}  # fmt: skip


@pytest.mark.feature("A33")
@pytest.mark.parametrize("wrong", WRONG_JVPS)
def test_wrong_derivative_rules(wrong):
    rule, kind, message = WRONG_JVPS[wrong]
    f = custom_jvp(lambda x: x)
    f.defjvp(rule)
    for g in (f, plait.jit(lambda x: f(x)), scanned(f)):
        with pytest.raises(kind, match=message):
            grad(g)(f32(1))


@pytest.mark.feature("A33")
@pytest.mark.parametrize("wrong", WRONG_VJPS)
def test_wrong_pullbacks(wrong):
    fwd, bwd, kind, message = WRONG_VJPS[wrong]
    f = custom_vjp(lambda x: x)
    f.defvjp(fwd, bwd)
    for g in (f, plait.jit(lambda x: f(x)), scanned(f)):
        with pytest.raises(kind, match=message):
            grad(g)(f32(1))


def test_results_that_are_not_the_functions():
    f = custom_vjp(lambda x: x)
    f.defvjp(lambda x: (pnp.stack([x, x]), None), lambda r, ct: (ct,))
    with pytest.raises(TypeError, match="returned results of types"):
        grad(lambda x: plait.jit(lambda x: f(x))(x).sum())(f32(1))
    with pytest.raises(TreeMismatch, match="another structure"):
        g = custom_vjp(lambda x: x["a"])
        g.defvjp(lambda x: (x["a"], None), lambda r, ct: ({"b": ct},))
        grad(g)({"a": f32(1)})


def test_functions_without_rules():
    for custom, what in ((custom_jvp, "JVP"), (custom_vjp, "VJP")):
        f = custom(lambda x: x)
        with pytest.raises(AttributeError, match=f"has no {what} rule") as caught:
            f(1.0)
        assert isinstance(caught.value, UndefinedRule)
        assert f"give it one before it is called: <lambda>.def{what.lower()}(...)" in str(
            caught.value
        )


def test_closing_over_what_is_differentiated():
    def outer(k, x):
        f = custom_vjp(lambda x: x * k)
        f.defvjp(lambda x: (x * k, k), lambda k, ct: (ct * k,))
        return plait.jit(lambda x: f(x))(x)

    assert grad(outer, 1)(f32(3), f32(2)).item() == 3
    with pytest.raises(MissingRule, match="closes over a value that is being differentiated"):
        grad(outer)(f32(3), f32(2))


# ---- together --------------------------------------------------------------------------------


def seven():
    """Rules that are wrong on purpose: derivatives are 7 and 11."""
    f = custom_jvp(lambda x: lax.sin(x))
    f.defjvp(lambda p, t: (lax.sin(p[0]), 7.0 * t[0]))
    g = custom_vjp(lambda x: lax.sin(x))
    g.defvjp(lambda x: (lax.sin(x), None), lambda _, ct: (11.0 * ct,))
    return {"custom_jvp": (f, 7), "custom_vjp": (g, 11)}


@pytest.mark.sampled(16)
@pytest.mark.feature("A37")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
def test_no_transformation_drops_a_rule(kind, way):
    f, slope = seven()[kind]
    g = WAYS[way](f)
    x = f32(0.4)
    np.testing.assert_allclose(g(x), np.sin(0.4), rtol=1e-6)
    assert grad(g)(x).item() == slope
    assert jvp(g, (x,), (f32(2),))[1].item() == 2 * slope
    assert linearize(g, x)[1](f32(1)).item() == slope
    assert plait.jit(grad(lambda x: g(x) * x))(x).item() == pytest.approx(
        slope * 0.4 + np.sin(0.4), rel=1e-5
    )


@pytest.mark.feature("A37")
def test_custom_functions_in_each_other():
    """Each uses its own rule: where the outer is replaced by its rule, the inner is in the rule."""
    inner, outer = seven()["custom_jvp"][0], seven()["custom_vjp"][0]
    f = custom_jvp(lambda x: outer(inner(x)))
    f.defjvp(lambda p, t: jvp(lambda x: outer(inner(x)), p, t))
    for way in ("plain", "jit", "scan", "checkpoint"):
        assert grad(WAYS[way](f))(f32(0.4)).item() == 77
    g = custom_vjp(lambda x: inner(outer(x)))
    g.defvjp(lambda x: (inner(outer(x)), x), lambda x, ct: vjp(lambda x: inner(outer(x)), x)[1](ct))
    for way in ("plain", "jit", "scan", "checkpoint"):
        assert grad(WAYS[way](g))(f32(0.4)).item() == 77


# ---- types of what rules return --------------------------------------------------------------


def rule_returning(g):
    f = plait.custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (x * x, x), lambda x, ct: (g(2 * x * ct),))
    return f


@pytest.mark.parametrize("run", [lambda f: f, plait.jit])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int32"])
def test_cotangents_of_another_dtype_are_rounded(dtype, run):
    """A gradient has the dtype of its argument, whatever precision the rule computes in."""
    x = pnp.asarray(np.float32([1.0, 2.0]))
    f = rule_returning(lambda ct: ct.astype(dtype))
    for g in (f, plait.jit(f)):
        got = run(plait.grad(lambda x: g(x).sum()))(x)  # noqa: B023
        assert got.dtype == np.float32 and got.tolist() == [2.0, 4.0]


@pytest.mark.parametrize("dtype", [bool, "complex64"])
def test_cotangents_that_are_no_real_numbers(dtype):
    f = rule_returning(lambda ct: ct.astype(dtype))
    with pytest.raises(TypeError, match="returned a cotangent of type"):
        plait.grad(f)(np.float32(2.0))


def test_tangents_of_another_dtype():
    f = plait.custom_jvp(lambda x: x * x)
    f.defjvp(lambda p, t: (p[0] * p[0], (2 * p[0] * t[0]).astype("float16")))
    with pytest.raises(TypeError, match="returned a tangent of type f16"):
        plait.grad(f)(np.float32(2.0))


@pytest.mark.parametrize("run", [lambda f: f, plait.jit])
def test_cotangents_of_integer_results_are_of_no_account(run):
    """They may be float0, or integers of the result's shape and dtype, and nothing else."""
    x = pnp.asarray(np.float32([1.0, 2.0]))
    y, pull = plait.vjp(run(lambda x: (x * 2, x.astype("int32"))), x)
    for none in (np.zeros(2, plait.float0), pnp.ones(2, "int32")):
        assert pull((y[0], none))[0].tolist() == [4.0, 8.0]
    for wrong in (pnp.ones(2, "int16"), pnp.ones(3, "int32"), pnp.ones(2)):
        with pytest.raises(TypeError, match="a pullback was given a cotangent of another type"):
            pull((y[0], wrong))


@pytest.mark.parametrize("run", [lambda f: f, plait.jit])
def test_custom_gradient_with_an_integer_result(run):
    @plait.custom_gradient
    def f(x):
        return (x * x, pnp.asarray(3)), lambda cts: (cts[0] * x * 20,)

    assert run(plait.grad(lambda x: f(x)[0]))(2.0) == 40.0


@pytest.mark.parametrize("run", [lambda f: f, plait.jit])
def test_cotangents_of_integer_results_may_be_python_numbers(run):
    y, pull = plait.vjp(run(lambda x, n: (x * 2, n, n > 0)), 1.0, 3)
    for ct in ((1.0, 3, True), (1.0, 3, pnp.asarray(True)), (1.0, np.zeros((), plait.float0), 0)):
        got, none = pull(ct)
        assert float(got) == 2.0 and none.dtype == plait.float0
    for wrong in ((1.0, 0.5, True), (1.0, 3, 1.0), (1.0, np.float32(3), True)):
        with pytest.raises(TypeError, match="a pullback was given a cotangent of another type"):
            pull(wrong)


@pytest.mark.parametrize("run", [lambda f: f, plait.jit])
def test_zeros_that_a_rule_returns_have_the_shape_of_what_they_belong_to(run):
    """Also where only zeros are swapped, symbolic ones or float0."""
    x, y, z = (np.ones((2, n), np.float32) for n in (1, 2, 3))

    def differentiated(bwd):
        f = custom_vjp(lambda x, y, z: (x, y, z))
        f.defvjp(lambda *vs: (f(*(v.value for v in vs)), None), bwd, symbolic_zeros=True)
        return run(plait.grad(lambda x, y, z: f(x, y, z)[2].sum(), (0, 1, 2)))

    gx, gy, gz = differentiated(lambda _, g: g)(x, y, z)
    assert (gx.sum(), gy.sum()) == (0, 0) and gz.tolist() == z.tolist()
    for bwd in (
        lambda _, g: (g[1], g[0], g[2]),
        lambda _, g: (SymbolicZero(g[1].aval), g[1], g[2]),
        lambda _, g: (np.zeros((7,), plait.float0), None, g[2]),
    ):
        with pytest.raises(TypeRule, match="returned a cotangent of type"):
            differentiated(bwd)(x, y, z)
    still = custom_jvp(lambda x: x * 2)
    still.defjvp(lambda p, t: (p[0], SymbolicZero(plait.typeof(y[0]))), symbolic_zeros=True)
    with pytest.raises(TypeRule, match="returned a tangent of type"):
        run(lambda z: plait.jvp(still, (z,), (z,)))(z)


def test_swapped_cotangents_with_symbolic_zeros():
    f = plait.custom_vjp(lambda a, b: a.sum() * b.sum())
    f.defvjp(
        lambda a, b: (a.value.sum() * b.value.sum(), None),
        lambda _, ct: (pnp.ones(3) * ct, pnp.ones(2) * ct),
        symbolic_zeros=True,
    )
    for nums in (0, 1, (0, 1)):
        with pytest.raises(TypeError, match="returned a cotangent of type"):
            plait.grad(f, nums)(pnp.ones(2), pnp.ones(3))


def test_custom_functions_say_which_arguments_are_no_arrays():
    by_number = custom_jvp(lambda f, x: f(x), nondiff_argnums=(0,))
    by_name = custom_vjp(lambda x, f: f(x), nondiff_argnames="f")
    assert (by_number.nondiff_argnums, by_name.nondiff_argnums) == ((0,), (1,))
    assert custom_jvp(lambda x: x).nondiff_argnums == ()


def test_a_wrapper_of_a_rule_is_taken_by_its_own_arguments():
    """It may give the rule more than it is given (`functools.wraps` copies the signature)."""

    def rule(residual, ct, more):
        return (residual * ct * more,)

    @functools.wraps(rule)
    def wrapper(residual, ct):
        return rule(residual, ct, 3.0)

    f = plait.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, x), wrapper)
    assert float(plait.grad(f)(2.0)) == 6.0


def test_checks_run_a_rule_and_not_the_function_too():
    calls = []

    def seen(name, x):
        shape = plait.ShapeDtypeStruct(np.shape(x), np.float32)
        return plait.pure_callback(lambda v: (calls.append(name), np.sin(v))[1], shape, x)

    f, g = custom_vjp(lambda x: seen("f", x)), custom_jvp(lambda x: seen("g", x))
    f.defvjp(lambda x: (seen("forward", x), x), lambda x, ct: (ct * np.float32(2),))
    g.defjvp(lambda xs, ts: (seen("rule", xs[0]), ts[0] * np.float32(3)))
    with plait.config(checks=True):
        assert float(grad(f)(np.float32(0.5))) == 2
        assert float(grad(g)(np.float32(0.5))) == 3
        wrong = custom_vjp(lambda x: x * 2)
        wrong.defvjp(lambda x: ((x, x), x), lambda x, ct: (ct[0],))
        with pytest.raises(TypeError):
            grad(lambda x: wrong(x))(np.float32(0.5))
    plait.effects_barrier()
    assert calls == ["forward", "rule"]


def test_values_are_taken_out_of_a_tree_of_primals():
    values, seen = custom_vjp_primal_tree_values, []

    @custom_vjp
    def f(box, k):
        return box["x"] * k + box["rest"][0]

    def fwd(box, k):
        seen.append((box["x"].perturbed, box["rest"][0].perturbed, k.perturbed))
        box, k = values(box), values(k)
        return f(box, k), (box, k)

    f.defvjp(fwd, lambda res, g: ({"x": g * res[1], "rest": (g,)}, g * res[0]["x"]), True)
    box = {"x": 3.0, "rest": (4.0,)}
    got = grad(f)(box, 5.0)
    assert (float(got["x"]), float(got["rest"][0])) == (5.0, 1.0)
    assert seen[-1] == (True, True, False)
    assert values({"a": (1, None)}) == {"a": (1, None)}  # what is no primal stays as it is
