"""Derivatives and mapping of artifacts that were saved without them: by reading them back.

Judges are the functions that were exported, which have not been through the reader, formulas in
numpy, and loops of Python over calls.
"""

import runpy
from pathlib import Path

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax
from plait.ext.errors import MissingRule
from plait.ext.ir import evaluate, inline_calls
from plait.ext.types import Aval
from plait_export import NotReadable, deserialize, export, import_jax, symbolic_args_specs

F32, I32 = np.float32, np.int32
POLYMORPHIC = runpy.run_path(str(Path(__file__).with_name("test_polymorphic.py")))
GOLDEN = Path(__file__).parents[2] / "packages/export/tests/golden"
X = np.random.default_rng(0).normal(size=(4, 3)).astype(F32)
W = np.random.default_rng(1).normal(size=(3, 3)).astype(F32)


def saved(f, *args, order=0, **how):
    return deserialize(export(f, **how)(*args).serialize(vjp_order=order))


def close(got, want, tol=2e-4):
    for g, w in zip(plait.tree.leaves(got), plait.tree.leaves(want), strict=True):
        g, w = np.asarray(g), np.asarray(w)
        assert g.shape == w.shape
        np.testing.assert_allclose(g, w, rtol=tol, atol=tol)


def pooled(x):
    return lax.reduce_window(x, -np.inf, lax.max, (2, 2), (1, 1))


def recurrent(x):
    return lax.scan(lambda c, r: (pnp.tanh(c @ W + r), c * r), x[0], x)


FUNCTIONS = {
    "a model": lambda x: pnp.tanh(x @ W) @ W.T,
    "softmax": lambda x: plait.nn.softmax(x),
    "logsumexp": lambda x: plait.nn.logsumexp(x, 1),
    "gelu": lambda x: plait.nn.gelu(x, approximate=False),
    "relu at zero": lambda x: plait.nn.relu(x - x[0]),
    "error functions": lambda x: lax.erf(x) + lax.erfc(x) * lax.lgamma(x * x + 1),
    "gamma at whole numbers": lambda x: lax.lgamma(pnp.round(x * x) + 1 + 0 * x) * x,
    "sorted": lambda x: pnp.sort(x, 0) * pnp.arange(4.0)[:, None],
    "sorted with others": lambda x: x[pnp.argsort(x[:, 0])] * pnp.arange(4.0)[:, None],
    "greatest": lambda x: lax.top_k(x, 2)[0],
    "extremes": lambda x: x.max(0) * x.min() + x[pnp.argmax(x[:, 0])],
    "running sums": lambda x: pnp.cumsum(x, 0) * pnp.cumprod(x, 1),
    "running extremes": lambda x: lax.cummax(x, 0) + lax.cumlogsumexp(x, 1),
    "scan": recurrent,
    "scan from the end": lambda x: lax.scan(lambda c, r: (c * r, c + r), x[0], x, reverse=True),
    "scan unrolled": lambda x: lax.scan(lambda c, r: (c * r, c + r), x[0], x, unroll=3),
    "scan in scan": lambda x: lax.scan(lambda c, r: (c + recurrent(r[None] * x)[0], None), x[0], x),
    "counted loop": lambda x: lax.fori_loop(0, 5, lambda i, c: pnp.sin(c) + i * x, x),
    "bounded loop": lambda x: lax.while_loop(
        lambda c: c.sum() < 50, lambda c: c * c + 1, x, max_steps=6
    ),
    "branches": lambda x: lax.cond(x.sum() > 0, pnp.sin, pnp.cos, x),
    "switch": lambda x: lax.switch(I32(1), [pnp.sin, pnp.cos, pnp.exp], x),
    "gather": lambda x: (
        x[np.array([0, 3, 3, 1])]
        * pnp.asarray(x).at[np.array([9, 0])].get(mode="fill", fill_value=2)[:, None].sum(0)
    ),
    "scatter": lambda x: (
        pnp.asarray(x).at[np.array([0, 3, 3])].add(2 * x[:3]).at[0].multiply(x[1])
    ),
    "pooling": pooled,
    "convolution": lambda x: lax.conv_general_dilated(
        x[None, None], W[None, None], (1, 2), [(2, 1), (0, 2)], (2, 1), (1, 2)
    ),
    "linear algebra": lambda x: pnp.linalg.solve(x.T @ x + pnp.eye(3), W) @ pnp.linalg.inv(W),
    "factorisations": lambda x: (
        pnp.linalg.cholesky(x.T @ x + pnp.eye(3)), pnp.linalg.eigvalsh(x.T @ x),
        pnp.linalg.svd(x, compute_uv=False), pnp.linalg.slogdet(x.T @ x)[1],
        pnp.linalg.qr(x)[1],
    ),
    "transforms": lambda x: pnp.abs(pnp.fft.rfft(x, axis=0)) ** 2,
    "complex": lambda x: pnp.real(pnp.exp(1j * x) * pnp.conj(x + 2j)),
    "attention": lambda x: plait.nn.dot_product_attention(*[x[None, :, None]] * 3),
    "remembered": lambda x: plait.checkpoint(lambda v: pnp.sin(pnp.cos(v)))(x),
}  # fmt: skip


def flat(f):
    return lambda *xs: [y for y in plait.tree.leaves(f(*xs)) if y.dtype.kind == "f"]


def loss(f):
    return lambda *xs: sum(pnp.sin(y).sum() for y in flat(f)(*xs))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_and_mapping_are_those_of_the_function(name):
    """Reverse and forward mode, the second order, mapping, and both in either order."""
    f = FUNCTIONS[name]
    again = saved(f, X)
    assert not again.has_vjp() and again.custom_rules == ()
    close(again.call(X), f(X))
    close(plait.grad(loss(again.call))(X), plait.grad(loss(f))(X))
    close(plait.jvp(flat(again.call), (X,), (X,)), plait.jvp(flat(f), (X,), (X,)))
    rows = np.stack([X, 2 * X, -X])
    looped = [plait.grad(loss(f))(r) for r in rows]
    mapped = plait.jit(plait.vmap(plait.grad(loss(again.call))))
    close(mapped(rows), np.stack([np.asarray(g) for g in looped]), 1e-3)
    summed = plait.grad(lambda r: plait.vmap(loss(again.call))(r).sum())
    close(summed(rows), np.stack([np.asarray(g) for g in looped]), 1e-3)


SMOOTH = ["a model", "softmax", "error functions", "scan", "counted loop", "convolution", "gelu"]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", SMOOTH)
def test_the_second_and_the_third_order(name):
    f = FUNCTIONS[name]
    again = saved(f, X)
    for g in (lambda h: plait.grad(lambda x: (plait.grad(loss(h))(x) * X).sum()),
              lambda h: plait.jacfwd(plait.grad(loss(h)))):  # fmt: skip
        close(g(again.call)(X), g(f)(X), 1e-3)
    third = lambda h: plait.jvp(  # noqa: E731
        lambda x: plait.jvp(plait.grad(loss(h)), (x,), (X,))[1], (X,), (X,)
    )[1]
    close(third(again.call), third(f), 5e-3)


def test_finite_differences_say_the_same():
    again = saved(lambda x: FUNCTIONS["scan"](lax.erf(x)), X)
    slope = np.asarray(plait.grad(loss(again.call))(X))
    step = 1e-2
    for at in [(0, 0), (3, 2), (1, 1)]:
        e = np.zeros_like(X)
        e[at] = step
        up, down = (float(loss(again.call)(v)) for v in (X + e, X - e))
        np.testing.assert_allclose((up - down) / (2 * step), slope[at], rtol=2e-2, atol=2e-3)


def test_mapping_is_no_loop():
    again = saved(lambda x: pnp.sin(x) @ W, X)
    program = inline_calls(plait.make_program(plait.vmap(again.call))(np.stack([X, X])))
    assert {e.prim.name for e in program.eqns} <= {"core.sin", "core.dot_general", "core.transpose"}
    assert "map_axes" not in str(program) and "scan" not in str(program)


def test_a_function_of_several_arguments_integers_and_results():
    def f(w, n, x):
        return {"y": pnp.sin(x @ w) * n, "n": n + 1, "both": (x > 0, x.sum(0))}

    again = saved(f, W, I32(3), X)
    close(again.call(W, I32(3), X), f(W, I32(3), X))
    pull = lambda h: plait.vjp(h, W, I32(3), X)[1](  # noqa: E731
        {"y": X, "n": np.zeros((), plait.float0),
         "both": (np.zeros((4, 3), plait.float0), np.ones(3, F32))})  # fmt: skip
    got, want = pull(again.call), pull(f)
    assert got[1].dtype == plait.float0
    close([got[0], got[2]], [want[0], want[2]])
    rows = np.stack([X, X + 1])
    outs = plait.vmap(again.call, (None, 0, 0))(W, np.array([3, 4], I32), rows)
    for k, n in enumerate((3, 4)):
        close([y[k] for y in plait.tree.leaves(outs)], plait.tree.leaves(f(W, I32(n), rows[k])))


@pytest.mark.parametrize("sizes", [(2, 3), (5, 4)])
def test_sizes_known_by_name(sizes):
    def f(x, y):
        total, steps = lax.scan(lambda c, r: (c * 0.5 + r, pnp.sin(c) * x.shape[0]), y, x)
        return total.sum() + (pnp.sort(x, 0) * x[::-1]).sum() + steps.mean()

    again = saved(f, *symbolic_args_specs((X, X[0]), ("b, c", "c")))
    x = np.random.default_rng(3).normal(size=sizes).astype(F32)
    close(plait.grad(again.call, (0, 1))(x, x[0]), plait.grad(f, (0, 1))(x, x[0]))
    # and by name where they are called: a derivative for any size, exported again
    slope = saved(plait.grad(again.call), *again.in_avals)
    close(slope.call(x, x[0]), plait.grad(f)(x, x[0]))


def test_inside_of_loops_branches_and_jit():
    again = saved(lambda c, r: (pnp.tanh(c @ W + r), c * r), X[0], X[0])

    def both(step):
        def f(x):
            carry, ys = lax.scan(step, x[0], x)
            return lax.cond(carry.sum() > 0, lambda: step(carry, x[1])[0].sum(), lambda: ys.sum())

        return f

    f = lambda c, r: (pnp.tanh(c @ W + r), c * r)  # noqa: E731
    close(plait.jit(plait.grad(both(again.call)))(X), plait.grad(both(f))(X))
    rows = np.stack([X, -X])
    want = np.stack([np.asarray(plait.grad(both(f))(r)) for r in rows])
    close(plait.vmap(plait.grad(both(again.call)))(rows), want)


def test_keys_are_mapped_and_do_not_vary():
    f = lambda k, x: x * plait.random.normal(k, x.shape)  # noqa: E731
    keys = plait.random.split(plait.random.key(0), 3)
    again = saved(f, keys[0], X)
    noise = [np.asarray(plait.random.normal(k, X.shape)) for k in keys]
    close(plait.vmap(again.call, (0, None))(keys, X), np.stack([X * n for n in noise]))
    slope = plait.vmap(plait.grad(lambda k, x: again.call(k, x).sum(), 1), (0, None))
    close(slope(keys, X), np.stack(noise))


def test_on_several_platforms():
    f = lambda x: lax.platform_dependent(x, cpu=lambda v: v**3, default=lambda v: v - 7)  # noqa: E731
    again = saved(f, X, platforms=["tpu", "cpu"])
    close(plait.grad(loss(again.call))(X), 3 * X**2 * np.cos(X**3), 1e-3)
    mapped = saved(plait.vmap(plait.grad(loss(again.call))), X[None], platforms=["cpu", "tpu"])
    close(mapped.call(X[None]), (3 * X**2 * np.cos(X**3))[None], 1e-3)


# ---- rules of users ------------------------------------------------------------------------


@plait.custom_jvp
def doubled(x):
    return x * 1.0


@doubled.defjvp
def _(xs, ts):
    return doubled(*xs), 2 * ts[0]


@plait.custom_vjp
def clipped(x):
    return x * x


clipped.defvjp(lambda x: (x * x, x), lambda x, ct: (pnp.clip(ct * 2 * x, -1, 1),))


@pytest.mark.parametrize("f, named", [(doubled, "custom_jvp of"), (clipped, "custom_vjp of")])
def test_rules_that_a_module_does_not_hold_are_named_and_missed(f, named):
    exported = export(lambda x: f(pnp.sin(x)))(X)
    again = deserialize(exported.serialize())
    assert len(again.custom_rules) == 1 and again.custom_rules[0].startswith(named)
    close(again.call(X), f(pnp.sin(X)))
    for derived in (plait.grad(loss(again.call)), lambda x: plait.jvp(again.call, (x,), (x,)),
                    lambda x: plait.vmap(plait.grad(loss(again.call)))(np.stack([x, x])),
                    plait.grad(lambda x: plait.vmap(again.call)(pnp.stack([x, x])).sum()),
                    plait.jit(plait.grad(loss(plait.jit(again.call))))):  # fmt: skip
        with pytest.raises((MissingRule, NotReadable), match=named) as e:
            derived(X)
        assert "serialize(vjp_order=1)" in e.value.fix and "lose_custom_rules=True" in e.value.fix
        assert "test_reading_back.py" in str(e.value)
    with pytest.raises(NotReadable, match=named):
        again.program()
    # mapping alone loses nothing
    rows = np.stack([X, -X])
    close(plait.vmap(again.call)(rows), f(pnp.sin(rows)))


def test_rules_may_be_lost_if_that_is_said():
    saved_ = export(lambda x: doubled(pnp.sin(x)))(X).serialize()
    for how in ({}, {"isolated": True}):
        again = deserialize(saved_, lose_custom_rules=True, **how)
        close(plait.grad(lambda x: again.call(x).sum())(X), np.cos(X))
    program = deserialize(saved_).program(lose_custom_rules=True)
    slope = plait.grad(lambda x: evaluate(program, [x])[0].sum())
    close(slope(X), np.cos(X))


def test_a_derivative_that_was_saved_is_the_one_that_is_used():
    f = lambda x: doubled(pnp.sin(x))  # noqa: E731
    once = saved(f, X, order=1)
    total = lambda g: lambda x: g(x).sum()  # noqa: E731
    close(plait.grad(total(once.call))(X), 2 * np.cos(X))
    rows = np.stack([X, -X])
    close(plait.vmap(plait.grad(total(once.call)))(rows), 2 * np.cos(rows))
    close(plait.grad(total(plait.vmap(once.call)))(rows), 2 * np.cos(rows))
    close(plait.jvp(once.call, (X,), (X,))[1], 2 * np.cos(X) * X)
    # beyond it the derivative itself is read back
    close(plait.grad(lambda x: plait.grad(total(once.call))(x).sum())(X), -2 * np.sin(X))


def test_a_mapping_rule_is_kept_by_calling_one_after_the_other():
    @plait.custom_vmap
    def f(x):
        return x * 2

    @f.def_vmap
    def _(size, batched, x):
        raise AssertionError("where it was exported there was no batch")

    again = saved(lambda x: f(x) + 1, X)
    assert again.custom_rules == ("custom_vmap of f",)
    close(plait.vmap(again.call)(np.stack([X, -X])), np.stack([X * 2 + 1, -X * 2 + 1]))


def test_what_stops_a_gradient_stops_it_still():
    f = lambda x: (lax.stop_gradient(x) * x).sum()  # noqa: E731
    close(plait.grad(saved(f, X).call)(X), X)


def test_an_artifact_that_calls_another_one_says_what_that_loses():
    inner = saved(lambda x: doubled(x), X)
    outer = saved(lambda x: inner.call(x) * 2, X)
    assert outer.custom_rules == inner.custom_rules != ()
    plain = saved(lambda x: pnp.sort(lax.erf(x), 0), X)
    twice = saved(lambda x: plain.call(x) * 2, X)
    assert twice.custom_rules == ()
    close(
        plait.grad(loss(twice.call))(X), plait.grad(loss(lambda x: 2 * pnp.sort(lax.erf(x), 0)))(X)
    )
    named = saved(lambda x: pnp.sort(x, 0), *symbolic_args_specs((X,), "b, 3"))
    assert saved(lambda x: named.call(x), X).custom_rules == ("core.sort",)


def test_a_loop_without_a_bound_has_forward_mode_only():
    f = lambda x: lax.while_loop(lambda v: v.sum() < 9, lambda v: v * 2 + 1, x)  # noqa: E731
    again = saved(f, X)
    close(plait.jvp(again.call, (X,), (X,)), plait.jvp(f, (X,), (X,)))
    with pytest.raises(MissingRule, match="while_loop cannot be differentiated in reverse"):
        plait.grad(loss(again.call))(X)


# ---- of others, and of every primitive -----------------------------------------------------


def test_files_of_jax_are_differentiated_and_mapped():
    """`tree` is saved with two derivatives; the third is read."""
    blob = (GOLDEN / "jax_tree.bin").read_bytes()
    w, x = np.linspace(0, 1, 6, dtype=F32).reshape(3, 2), X[:2]
    exported = import_jax(blob)
    total = lambda w: exported.call({"w": w}, x, F32(0), n=3)["l"][0].astype(F32).sum()  # noqa: E731
    plait.grad(total)(w)
    sizes = import_jax((GOLDEN / "jax_sizes.bin").read_bytes())
    value = np.cos(np.arange(12, dtype=F32)).reshape(4, 3)
    one = flat(lambda v: sizes.call(v, v[0]))
    for got, want in zip(plait.vmap(one)(np.stack([-value, value])), one(value), strict=True):
        close(np.asarray(got)[1], want)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", POLYMORPHIC["CASES"])
def test_every_primitive_with_symbolic_sizes_is_read_back(name):
    """The program for sizes known by name is exported again; results are numpy's."""
    case, arrays = POLYMORPHIC["CASES"][name], POLYMORPHIC["arrays_for"]
    rng = np.random.default_rng(0)
    like = tuple(arrays(case, case.sizes[0], rng))
    types = symbolic_args_specs(like, case.shapes, case.constraints)
    again = saved(case.f, *types)
    program = again.program(lose_custom_rules=True)
    twice = export(lambda *xs: evaluate(program, xs))(*again.in_avals)
    for sizes in case.sizes[-1:]:
        xs = arrays(case, sizes, rng)
        here = again.read_for([Aval(np.shape(x), np.asarray(x).dtype) for x in xs])
        want = POLYMORPHIC["flat"](case.reference(*xs))
        for got in (twice.call(*xs), plait.jit(lambda *vs, p=here: evaluate(p, vs))(*xs)):
            for g, w in zip(POLYMORPHIC["flat"](got), want, strict=True):
                g, w = np.asarray(g), np.asarray(w)
                assert g.shape == w.shape
                np.testing.assert_allclose(g, w, rtol=2e-5, atol=2e-5)


SYMBOLIC = runpy.run_path(str(Path(__file__).with_name("test_symbolic_functions.py")))


class Twice:
    """What was exported, read back by the sizes that are known by name, and exported again."""

    def __init__(self, exported):
        program = exported.program()
        self.made = export(lambda *xs: evaluate(program, xs))(*exported.in_avals)
        self.tree = exported.out_tree

    def call(self, *xs):
        return self.tree.unflatten(plait.tree.leaves(self.made.call(*xs)))


TABLES = [(table, name) for table in ("SAME", "OTHERS") for name in SYMBOLIC[table]]


@pytest.mark.sampled(16)
@pytest.mark.parametrize("table, name", TABLES)
def test_functions_of_sizes_that_may_be_0_are_read_back(table, name, monkeypatch):
    """Results are numpy's, at each size."""
    check, made = SYMBOLIC["check"], SYMBOLIC["exported"]
    read = []
    monkeypatch.setitem(
        check.__globals__, "exported", lambda *args: read.append(1) or Twice(made(*args))
    )
    tests = {"SAME": "test_numpy_says_the_same", "OTHERS": "test_numpy_says_it_otherwise"}
    SYMBOLIC[tests[table]](name)
    assert read
