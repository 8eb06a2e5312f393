"""A stranger's operation with a program on rows: what it is given for saying how it is written.

Invariant: the other side is a Python loop over rows, and its derivatives.
"""

import numpy as np
import pytest

import plait
import plait.ext as ext
import plait.numpy as pnp
from plait.checks import check, checkify
from plait.ext.ir import evaluate
from plait.ext.observers import runs_rules
from plait.ext.trace import stage
from plait_autodiff.ext import Rowwise, rowwise

SHARED, EACH, SUMMED = "shared", "each", "summed"


class Wired(ext.Wiring):
    """All operands and results are the program's; those of each row have one axis more."""

    def slots(self, params):
        n, m = len(params["kinds"]), len(params["outs"])
        kinds = (*params["kinds"], *params["outs"])
        mapped = {s: (0,) for s, k in enumerate(kinds) if k == EACH}
        ins, outs = range(n), range(n, n + m)
        return ext.Slots(ins, outs, [(params["program"], ins, outs)], n + m, mapped)

    def rebuild(self, params, programs, parts, operands, extra):
        n = len(params["kinds"])
        spread = lambda kinds, slots: [k for k, ps in zip(kinds, slots) for _ in ps]
        kinds = (*[SHARED] * len(extra), *spread(params["kinds"], parts[:n]))
        new = {"program": programs[0], "kinds": kinds}
        return [*extra, *operands], {
            **params, **new, "outs": tuple(spread(params["outs"], parts[n:]))
        }  # fmt: skip


def _rows(*xs, program, kinds, outs, size):
    """Apply `program` to every row of what is each row's own."""
    return [
        a if k == SUMMED else a.with_shape((size, *a.shape))
        for a, k in zip(program.out_avals, outs, strict=True)
    ]


rows = ext.Primitive("rowwise_test.rows", _rows, many=True, higher=Wired())


@ext.expand_rules.rule(rows)
def _(*xs, program, kinds, outs, size):
    each = [
        evaluate(program, [x[i] if k == EACH else x for x, k in zip(xs, kinds)])
        for i in range(size)
    ]
    columns = list(zip(*each))
    return [sum(c[1:], c[0]) if k == SUMMED else pnp.stack(c) for c, k in zip(columns, outs)]


class Mine(Rowwise):
    def kinds(self, params):
        return params["kinds"], params["outs"]

    def made(self, params, program, kinds, outs):
        return {**params, "program": program, "kinds": kinds, "outs": outs}

    def each(self, aval, params):
        return EACH


rowwise(rows, Mine())


def on_rows(f, shared, own, summed=False):
    """f(*shared, *row of each), stacked or summed."""
    shared, own = [pnp.asarray(x) for x in shared], [pnp.asarray(x) for x in own]
    avals = [*[x.aval for x in shared], *[x.aval.with_shape(x.shape[1:]) for x in own]]
    program, captured = stage(lambda *xs: [f(*xs)], avals, "f")
    kinds = (SHARED,) * (len(captured) + len(shared)) + (EACH,) * len(own)
    outs = (SUMMED if summed else EACH,)
    (y,) = rows.bind(
        *captured, *shared, *own, program=program, kinds=kinds, outs=outs, size=own[0].shape[0]
    )
    return y


W = np.linspace(-1, 1, 12).reshape(3, 4)
X = np.linspace(0, 2, 20).reshape(5, 4)


def layer(w, x):
    return pnp.sin(w @ x) * pnp.cos(x).sum()


def by_loop(w, x, summed):
    out = [layer(w, r) for r in x]
    return sum(out[1:], out[0]) if summed else pnp.stack(out)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("summed", [False, True], ids=["stacked", "summed"])
@pytest.mark.parametrize(
    "way", [lambda f: f, plait.jit, plait.checkpoint], ids=["eager", "jit", "checkpoint"]
)
def test_derivatives(summed, way):
    mine = way(lambda w, x: on_rows(layer, [w], [x], summed))
    want = lambda w, x: by_loop(w, x, summed)
    w, x = pnp.asarray(W), pnp.asarray(X)
    np.testing.assert_allclose(mine(w, x), want(w, x), rtol=1e-12)
    of = lambda f: plait.grad(lambda w, x: (f(w, x) ** 2).sum(), (0, 1))(w, x)
    for g, v in zip(of(mine), of(want)):
        np.testing.assert_allclose(g, v, rtol=1e-10)
    _, t = plait.jvp(mine, (w, x), (w, pnp.cos(x)))
    np.testing.assert_allclose(t, plait.jvp(want, (w, x), (w, pnp.cos(x)))[1], rtol=1e-10)
    twice = lambda f: plait.jvp(lambda w: plait.grad(lambda w: (f(w, x) ** 2).sum())(w), (w,), (w,))
    np.testing.assert_allclose(twice(mine)[1], twice(want)[1], rtol=1e-9)


def test_what_is_shared_is_not_kept_for_each_row():
    """A residual that is an operand is handed on."""
    big = pnp.ones((64, 4))
    f = lambda w, x: on_rows(lambda w, x: pnp.sin(w @ x), [w], [x], True).sum()
    program = plait.make_program(plait.grad(f, 1))(big, pnp.asarray(X))

    def largest(p):
        sizes = [v.aval.size for e in p.eqns if e.prim is rows for v in e.outputs]
        return max(sizes, default=0)

    assert largest(program) < 5 * big.size
    np.testing.assert_allclose(
        plait.grad(f, 1)(big, pnp.asarray(X)),
        plait.grad(lambda w, x: sum(pnp.sin(w @ r).sum() for r in x), 1)(big, pnp.asarray(X)),
        rtol=1e-10,
    )


def checked_sum(w, x):
    check((x > 0).all(), "min {}", x.min())
    return (w * x).sum()


def test_checks_inside_are_collected_once_there_is_a_rule():
    """Nobody guesses how a stranger's operation passes on what its program finds."""
    f = lambda x: on_rows(checked_sum, [W], [x])
    rows_of = [X + 1, np.where(X > 1.2, -X, X + 1)]
    with pytest.raises(plait.errors.MissingRule, match=r"runs_rules\.rule\(rows\)"):
        checkify(f)(rows_of[0])

    @runs_rules.rule(rows)
    def _(passage, args, params):
        inner = passage.examples(params["program"], params["size"])
        front = (*[SHARED] * len(inner.operands), *[EACH] * len(inner.rows))
        kinds = (*front, *params["kinds"])
        outs = (*[EACH] * inner.width, *params["outs"])
        new = {"program": inner.program, "kinds": kinds, "outs": outs}
        ys = rows.bind(*inner.operands, *inner.rows, *args, **{**params, **new})
        return passage.taken_examples(inner, ys, lambda i: f"in row {i}")

    for x in rows_of:
        bad = [i for i, r in enumerate(x) if not (r > 0).all()]
        want = f"min {np.float64(x[bad[0]].min())}, in row {bad[0]}" if bad else None
        for g in (checkify(f), plait.jit(checkify(f))):
            error, y = g(x)
            assert error.get() == want
            np.testing.assert_allclose(y, [(W * r).sum() for r in x], rtol=1e-12)
        error, _ = checkify(plait.grad(lambda x: f(x).sum()))(x)
        assert error.get() == want
