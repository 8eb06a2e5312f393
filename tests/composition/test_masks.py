"""mask: a function on padded arrays against the function on the arrays themselves.

Padding is poisoned, and gradients with respect to it are zero.

Invariant: the other side is the function itself, on arrays without padding.
"""

from typing import Any, NamedTuple

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax, mask
from plait.errors import ArgumentError, AxisError, MissingRule, PlaitError, ProgramError, ShapeError

N, NM = {"n": (3, 5)}, {"n": (2, 5), "m": (3, 4)}
"""For each name (size, padded size)."""


class Case(NamedTuple):
    f: Any
    shapes: list[str]
    sizes: dict[str, tuple[int, int]]
    out: Any = None


def shape_of(text, sizes):
    return tuple([int(eval(p, {}, sizes)) for p in text.split(",") if p.strip()])


def cut(x, shape):
    return np.asarray(x)[tuple([slice(0, n) for n in shape])]


def widened(x, shape, poison):
    """`x` in a larger array of `poison`."""
    wide = np.full(shape, poison, x.dtype)
    wide[tuple([slice(0, n) for n in x.shape])] = x
    return wide


class Padded:
    """The arguments of a case, and the same padded."""

    def __init__(self, case, poison):
        rng = np.random.default_rng(0)
        self.case = case
        self.sizes = {k: n for k, (n, _) in case.sizes.items()}
        wide = {k: w for k, (_, w) in case.sizes.items()}
        self.xs = [rng.standard_normal(shape_of(s, self.sizes)) for s in case.shapes]
        self.padded = [widened(x, shape_of(s, wide), poison) for x, s in zip(self.xs, case.shapes)]

    def want(self):
        return case_leaves(self.case.f(*map(pnp.asarray, self.xs)))


def case_leaves(tree):
    return [np.asarray(x) for x in plait.tree.leaves(tree)]


@plait.custom_jvp
def twice_sin(x):
    return pnp.sin(x) * 2


# other than the derivative, so that it is seen which is used
twice_sin.defjvp(lambda p, t: (twice_sin(p[0]), 3 * t[0] * pnp.cos(p[0])))


@plait.custom_vjp
def half_sin(x):
    return pnp.sin(x) / 2


half_sin.defvjp(lambda x: (half_sin(x), x), lambda x, ct: (5 * ct * x,))


def steps(x, start, **how):
    return lax.scan(lambda c, v: (c + v, c * v), start, x, **how)


ZERO = np.float64(0)

CASES = {
    "sum": Case(lambda x: x.sum(), ["n"], N, ""),
    "add": Case(lambda x, y: x + y, ["n", "n"], N, "n"),
    "from 1": Case(lambda x: x[1:], ["n"], N, "n-1"),
    "to the last": Case(lambda x: x[:-1], ["n"], N, "n-1"),
    "every other": Case(lambda x: x[::2], ["n"], N),
    "diff": Case(lambda x: x[1:] - x[:-1], ["n"], N, "n-1"),
    "pad": Case(lambda x: pnp.pad(x, (1, 2), constant_values=7), ["n"], N, "n+3"),
    "pad less": Case(lambda x: lax.pad(x, 2.0, ((-1, 2, 0),)), ["n"], N, "n+1"),
    "pad between": Case(lambda x: lax.pad(x, 2.0, ((1, 2, 1),)), ["n"], N),
    "transpose": Case(lambda x: x.T, ["n,m"], NM, "m,n"),
    "where": Case(lambda x: pnp.where(x > 0, x, -2 * x), ["n"], N, "n"),
    "where of another": Case(lambda c, x: pnp.where(c > 0, x, 1.0), ["n", "n"], N, "n"),
    "joined": Case(lambda x, y: pnp.concatenate([x, y, x]), ["n", "m"], NM, "2*n+m"),
    "stacked": Case(lambda x, y: pnp.stack([x, y]), ["n", "n"], N, "2,n"),
    "reductions": Case(lambda x: (x.max(), x.min(), x.prod(), x.mean()), ["n"], N, ("",) * 4),
    "var": Case(lambda x: x.var(0), ["n,2"], N, "2"),
    "broadcast": Case(lambda x: lax.broadcast_in_dim(x, (4, x.shape[0]), (1,)), ["n"], N, "4,n"),
    "reshape": Case(lambda x: x.reshape(-1), ["n,3"], N, "3*n"),
    "reshape n m": Case(lambda x: x.reshape(-1), ["n,m"], NM, "n*m"),
    "reshape apart": Case(lambda x: x.reshape(2, -1), ["2*n"], N, "2,n"),
    "outer": Case(pnp.outer, ["n", "m"], NM, "n,m"),
    "softmax": Case(plait.nn.softmax, ["n"], N, "n"),
    "cumsum": Case(pnp.cumsum, ["n"], N, "n"),
    "cumsum backwards": Case(lambda x: lax.cumsum(x, reverse=True), ["n"], N, "n"),
    "sort": Case(pnp.sort, ["n"], N, "n"),
    "argmax": Case(pnp.argmax, ["n"], N, ""),
    "median": Case(pnp.median, ["n"], N),
    "top 2": Case(lambda x: lax.top_k(x, 2)[0], ["n"], N, "2"),
    "tile, repeat": Case(lambda x: (pnp.tile(x, 2), pnp.repeat(x, 2)), ["n"], N, ("2*n",) * 2),
    "roll": Case(lambda x: pnp.roll(x, 1), ["n"], N, "n"),
    "sizes": Case(lambda x: x * pnp.arange(x.shape[0]) / x.shape[0], ["n"], N, "n"),
    "eye, tril": Case(lambda x: x + pnp.eye(x.shape[0]) + pnp.tril(x), ["n,n"], N, "n,n"),
    "no rows": Case(lambda x: x.sum() + 2 * x, ["n"], {"n": (0, 5)}, "n"),
    "no padding": Case(lambda x: x.sum() + 2 * x, ["n"], {"n": (5, 5)}, "n"),
    "one row": Case(lambda x: x - x.mean(), ["n"], {"n": (1, 5)}, "n"),
    "map": Case(lambda x: lax.map(lambda r: r.sum(), x), ["n,m"], NM, "n"),
    "cond": Case(
        lambda x: lax.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 1, x), ["n"], N, "n"
    ),
    "scan": Case(lambda x: steps(x, ZERO), ["n"], N, ("", "n")),
    "scan backwards": Case(lambda x: steps(x, ZERO, reverse=True), ["n"], N, ("", "n")),
    "scan of rows": Case(lambda x: steps(x, np.zeros(3)), ["n,3"], N, ("3", "n,3")),
    "scan carries n": Case(lambda x, y: steps(y, x), ["n", "m,n"], NM, ("n", "m,n")),
}
WIDER = {
    "scan of jit": Case(
        plait.jit(lambda x: lax.scan(plait.jit(lambda c, v: (c + v, c * v)), ZERO, x)), ["n"], N
    ),
    "split": Case(lambda x: pnp.split(x, 2), ["2*n"], N, ["n", "n"]),
    "split at": Case(lambda x: lax.split(x, (1, x.shape[0] - 1)), ["n"], N, None),
    "split elsewhere": Case(lambda x: pnp.split(x, [1, 3], axis=1), ["n,4"], N),
    "uniform": Case(
        lambda x: x * plait.random.uniform(plait.random.key(0), (4,)), ["n,4"], N, "n,4"
    ),
    "uniform of n": Case(
        lambda x: x * plait.random.uniform(plait.random.key(0), x.shape), ["n"], N, "n"
    ),
    "taken apart": Case(lambda x: (lambda a, b: a * b)(*x), ["2,n"], N, "n"),
    "first": Case(lambda x: x[0], ["n,2"], N, "2"),
    "last": Case(lambda x: x[-1], ["n,2"], N, "2"),
    "rows": Case(lambda x: x[pnp.array([0, -1, 1])], ["n,2"], N, "3,2"),
    "columns": Case(lambda x: pnp.take(x, pnp.array([0, 2]), axis=1), ["n,4"], N, "n,2"),
    "as many rows": Case(
        lambda x, y: x[pnp.argsort(y) % x.shape[0]], ["n,2", "m"], NM, "m,2"
    ),
    "set": Case(lambda x: x.at[0].set(1.0).at[-1].multiply(2.0), ["n"], N, "n"),
    "part": Case(lambda x: lax.dynamic_slice(x, (1,), (2,)), ["n"], N, "2"),
    "trees": Case(lambda x, y: {"a": (x * 2, y.sum()), "b": [x @ y]}, ["n,m", "m"], NM,
                  {"a": ("n,m", ""), "b": ["n"]}),
}  # fmt: skip
INSIDE = {
    "jit": Case(plait.jit(lambda x: x * x.sum()), ["n"], N, "n"),
    "jit of jit": Case(plait.jit(plait.jit(lambda x: pnp.sin(x) * x.shape[0])), ["n"], N, "n"),
    "rev": Case(lambda x: x[::-1] * pnp.arange(x.shape[0]), ["n"], N, "n"),
    "flip": Case(lambda x: pnp.flip(x) + lax.rev(x, (0,)), ["n,m"], NM, "n,m"),
    "expit": Case(plait.scipy.special.expit, ["n"], N, "n"),
    "logsumexp": Case(plait.scipy.special.logsumexp, ["n"], N, ""),
    "relu6, silu": Case(lambda x: plait.nn.silu(plait.nn.relu6(3 * x)), ["n"], N, "n"),
    "custom_jvp": Case(twice_sin, ["n"], N, "n"),
    "custom_vjp": Case(half_sin, ["n"], N, "n"),
    "custom after sum": Case(lambda x: twice_sin(x.sum()) * half_sin(x), ["n"], N, "n"),
    "checkpoint": Case(plait.checkpoint(lambda x: pnp.sin(x) * x.sum()), ["n"], N, "n"),
    "vmap": Case(plait.vmap(lambda r: r.sum() * r), ["n,m"], NM, "n,m"),
    "vmap of axis 1": Case(plait.vmap(lambda r: r.sum(), 1), ["n,m"], NM, "m"),
    "grad": Case(plait.grad(lambda x: (x**3).sum()), ["n"], N, "n"),
    "mask": Case(
        lambda x: mask(lambda y: y * y.sum(), ["k"], "k")([x], {"k": x.shape[0]}), ["n"], N, "n"
    ),
    "mask of fewer": Case(
        lambda x: mask(lambda y: (y * y).sum(), ["n"], "")([x], {"n": x.shape[0] - 1}),
        ["n"], N, "",
    ),
    "mask of a number": Case(
        lambda x: mask(lambda y: (y * y).sum(), ["k"], "")([x], {"k": 2}), ["n"], N, ""
    ),
}  # fmt: skip
DOTS = {
    "vectors": Case(lambda x, y: x @ y, ["n", "n"], N, ""),
    "contracted": Case(lambda x, y: x @ y, ["2,n", "n,3"], N, "2,3"),
    "free": Case(lambda x, y: x @ y, ["n,2", "2,m"], NM, "n,m"),
    "both": Case(lambda x, y: x @ y, ["n,m", "m,n"], NM, "n,n"),
    "batch": Case(lambda x, y: pnp.einsum("bij,bjk->bik", x, y), ["n,2,m", "n,m,3"], NM, "n,2,3"),
    "three": Case(lambda x, y: pnp.einsum("ni,mi,n->m", x, y, x[:, 0]), ["n,2", "m,2"], NM, "m"),
}
CONVOLUTIONS = {
    "valid": {"padding": "VALID"},
    "same": {"padding": "SAME"},
    "strided": {"padding": "VALID", "window_strides": (2,)},
    "strided same": {"padding": "SAME", "window_strides": (2,)},
    "dilated": {"padding": "VALID", "rhs_dilation": (2,)},
    "spread": {"padding": "VALID", "lhs_dilation": (2,)},
    "padded": {"padding": [(1, 2)]},
    "cut off": {"padding": [(-1, 1)], "window_strides": (2,)},
}
WHERE = {
    "n": (["n,2,8", "3,2,3"], N),
    "c": (["2,c,6", "3,c,3"], {"c": (2, 4)}),
    "o": (["2,2,6", "o,2,3"], {"o": (2, 4)}),
    "h": (["2,2,h", "3,2,3"], {"h": (6, 9)}),
    "k": (["2,2,9", "3,2,k"], {"k": (2, 4)}),
    "all": (["n,2,h", "o,2,k"], {"n": (2, 3), "h": (7, 9), "o": (2, 3), "k": (2, 4)}),
}


def convolution(how, where):
    params = {"window_strides": (1,), **CONVOLUTIONS[how]}
    return Case(lambda x, k: lax.conv_general_dilated(x, k, **params), *WHERE[where])


def check_values(case):
    """Whatever lies in the padding, eager and in one program."""
    for poison in (np.nan, 1e30):
        given = Padded(case, poison)
        masked = mask(case.f, case.shapes, case.out)
        for call in (masked, plait.jit(masked, tier="fast")):
            got = case_leaves(call(given.padded, given.sizes))
            for g, w in zip(got, given.want(), strict=True):
                assert g.dtype == w.dtype
                np.testing.assert_allclose(cut(g, w.shape), w, 1e-9, 1e-9)


def check_gradients(case):
    """Inside and outside of mask; with respect to padding they are zero."""
    given = Padded(case, np.nan)
    shapes = [w.shape for w in given.want()]

    def loss(*xs):
        return sum((pnp.sin(y) * 1.5).sum() for y in plait.tree.leaves(case.f(*xs)))

    def inside(xs, sizes):
        return mask(loss, case.shapes, "")(xs, sizes)

    def outside(xs, sizes):
        ys = plait.tree.leaves(mask(case.f, case.shapes)(xs, sizes))
        there = [y[tuple([slice(0, n) for n in s])] for y, s in zip(ys, shapes)]
        return sum((pnp.sin(y) * 1.5).sum() for y in there)

    want = plait.grad(lambda xs: loss(*xs))([pnp.asarray(x) for x in given.xs])
    for of in (inside, outside):
        got = plait.jit(plait.grad(of), tier="fast")(
            [pnp.asarray(x) for x in given.padded], given.sizes
        )
        for g, w in zip(got, want):
            np.testing.assert_allclose(g, widened(np.asarray(w), g.shape, 0), 1e-9, 1e-9)


@pytest.mark.sampled(12)
@pytest.mark.feature("B51")
@pytest.mark.parametrize("name", CASES)
def test_rules(name):
    check_values(CASES[name])
    if name != "argmax":
        check_gradients(CASES[name])


@pytest.mark.sampled(8)
@pytest.mark.feature("B51")
@pytest.mark.parametrize("name", WIDER)
def test_what_else_takes_arrays_apart(name):
    check_values(WIDER[name])
    check_gradients(WIDER[name])


@pytest.mark.sampled(8)
@pytest.mark.feature("B58")
@pytest.mark.parametrize("name", INSIDE)
def test_transformations_inside(name):
    check_values(INSIDE[name])
    check_gradients(INSIDE[name])


@pytest.mark.sampled(10)
@pytest.mark.feature("B54")
@pytest.mark.parametrize("name", DOTS)
def test_contractions(name):
    check_values(DOTS[name])
    check_gradients(DOTS[name])


@pytest.mark.sampled(12)
@pytest.mark.feature("B53")
@pytest.mark.parametrize(
    "how, where",
    [(h, w) for h in CONVOLUTIONS for w in WHERE if w == "all" or h in ("strided same", "spread")],
)
def test_convolutions(how, where):
    check_values(convolution(how, where))
    check_gradients(convolution(how, where))


@pytest.mark.feature("B53")
def test_convolution_of_images():
    """The axes of two sizes, with a stride of its own each, and groups."""
    case = Case(
        lambda x, k: lax.conv_general_dilated(
            x, k, (2, 1), "SAME", rhs_dilation=(1, 2), feature_group_count=2
        ),
        ["n,2,h,w", "4,1,3,2"],
        {"n": (2, 3), "h": (6, 9), "w": (5, 8)},
    )
    check_values(case)
    check_gradients(case)


@pytest.mark.feature("B55")
def test_select_and_slices():
    """Of booleans that are padded themselves, and to limits that are sizes."""
    c = np.array([True, False, True, True])
    x = np.array([1.0, 2.0, 3.0, np.nan])
    got = mask(lambda c, x: pnp.where(c, x, -x)[: x.shape[0] - 1], ["n", "n"], "n-1")
    np.testing.assert_array_equal(got([c, x], {"n": 3})[:2], [1, -2])
    got = mask(lambda x: lax.slice(x, (1,), (x.shape[0],)), ["n"])
    np.testing.assert_array_equal(got([x], {"n": 3})[:2], [2, 3])
    got = mask(lambda x: x[x.shape[0] - 2 :], ["n"])  # as many as there are, two at most
    np.testing.assert_array_equal(got([x], {"n": 3})[:2], [2, 3])


@pytest.mark.feature("B52")
def test_one_program_for_all_sizes():
    """What is padded alike is one program; its trace serves all sizes, which are its operands."""
    traced = []

    @plait.jit
    def f(x):
        traced.append(x.shape)
        return x * x.sum()

    masked = plait.jit(mask(f, ["n"], "n"))
    x = np.arange(1.0, 6.0)
    for n in range(6):
        np.testing.assert_allclose(masked([x], {"n": n})[:n], x[:n] * x[:n].sum())
    assert [str(n) for (n,) in traced] == ["n_m0"]


@pytest.mark.feature("B51")
def test_trees_of_arguments():
    f = mask(
        lambda d, y: {"u": d["u"] * y.sum(), "v": d["v"][0] @ d["u"]},
        [{"u": "n", "v": ["(m, n)"]}, "m"],
        {"u": "n", "v": "m"},
    )
    rng = np.random.default_rng(1)
    u, v, y = rng.standard_normal(3), rng.standard_normal((2, 3)), rng.standard_normal(2)
    got = f(
        [{"u": widened(u, (5,), np.nan), "v": [widened(v, (4, 5), np.nan)]},
         widened(y, (4,), np.nan)],
        {"n": 3, "m": 2},
    )  # fmt: skip
    np.testing.assert_allclose(got["u"][:3], u * y.sum())
    np.testing.assert_allclose(got["v"][:2], v @ u)


def test_sizes_as_they_come():
    """ "_" is any size, a text alone the shape of the only argument."""
    x = np.arange(12.0).reshape(4, 3)
    got = mask(lambda x: x.sum(0), "(n, _)", "_")([x], {"n": 2})
    np.testing.assert_array_equal(got, x[:2].sum(0))
    halves = mask(lambda x, y: x.sum() - y.sum(), ["n", "floordiv(n, 2)"], "")
    assert float(halves([np.arange(5.0), np.ones(2)], {"n": 3})) == 3 - 1


# ---- under transformations -----------------------------------------------------------------------


def rnn(w, xs):
    """The last state, and all of them."""

    def step(h, x):
        h = pnp.tanh(w @ h + x)
        return h, h

    return lax.scan(step, pnp.zeros(3, "float64"), xs)


@pytest.mark.feature("B58")
@pytest.mark.parametrize("wrap", [lambda f: f, plait.jit], ids=["eager", "jit"])
def test_batches_of_sequences(wrap):
    """vmap(mask(rnn)) is the loop over sequences, each of its own length; so is its gradient."""
    rng = np.random.default_rng(2)
    w, lengths = rng.standard_normal((3, 3)), [4, 0, 1, 6]
    sequences = [rng.standard_normal((n, 3)) for n in lengths]
    padded = np.stack([widened(s, (6, 3), np.nan) for s in sequences])
    masked = mask(rnn, ["_, _", "(t, _)"], ("_", "(t, _)"))
    batch = wrap(plait.vmap(lambda w, x, n: masked([w, x], {"t": n}), (None, 0, 0)))
    last, states = batch(w, padded, np.asarray(lengths))
    for b, s in enumerate(sequences):
        want_last, want_states = rnn(w, s)
        np.testing.assert_allclose(last[b], want_last, 1e-9)
        np.testing.assert_allclose(states[b, : lengths[b]], want_states, 1e-9)

    def loss(w, x, ns):
        return (batch(w, x, ns)[0] ** 2).sum()

    got = wrap(plait.grad(loss, (0, 1)))(w, padded, np.asarray(lengths))
    of_one = plait.grad(lambda w, s: (rnn(w, s)[0] ** 2).sum(), (0, 1))
    each = [of_one(w, s) for s in sequences]
    np.testing.assert_allclose(got[0], sum(np.asarray(g) for g, _ in each), 1e-9)
    for b, (_, g) in enumerate(each):
        np.testing.assert_allclose(got[1][b], widened(np.asarray(g), (6, 3), 0), 1e-9, 1e-12)


@pytest.mark.feature("B58")
def test_mapped_with_its_sizes():
    """vmap of the masked function itself, over arguments and sizes; the same names inside."""
    x = np.arange(15.0).reshape(3, 5)
    sizes = np.array([0, 2, 5])
    outer = mask(lambda y, k: mask(lambda z: z.sum(), ["n"], "")([y], {"n": k}), ["n", ""], "")
    ks = np.array([0, 1, 3])
    got = plait.vmap(lambda x, n, k: outer([x, k], {"n": n}))(x, sizes, ks)
    np.testing.assert_array_equal(got, [r[:k].sum() for r, k in zip(x, ks)])
    got = plait.vmap(mask(lambda y: y - y.sum(), ["n"], "n"))([x], {"n": sizes})
    for g, r, n in zip(got, x, sizes):
        np.testing.assert_array_equal(g[:n], r[:n] - r[:n].sum())


@pytest.mark.feature("B58")
def test_forward_mode():
    x, t = np.array([1.0, 2.0, np.nan]), np.array([3.0, 4.0, np.nan])
    f = mask(lambda x: (x**2).sum(), ["n"], "")
    out, dot = plait.jvp(lambda x: f([x], {"n": 2}), (x,), (t,))
    assert (float(out), float(dot)) == (5.0, 2 * (1 * 3 + 2 * 4))


def test_a_pile_inside():
    """What a mask sees padded may be a pile for what is inside of it."""
    x = np.arange(8.0).reshape(2, 4)

    def sums(x, n):
        return plait.vmap(lambda r: r.sum(), plait.pile_axis)(plait.Pile.from_padded(x, n))

    got = mask(sums, ["2, n", "2"], "2")([x, np.array([1, 2])], {"n": 3})
    np.testing.assert_array_equal(got, [0, 4 + 5])


# ---- refused -------------------------------------------------------------------------------------

X, Y = np.arange(5.0), np.arange(3.0)


def same(x):
    return x


OUT = {
    "less": (lambda x: x, ["n"], "n-1", "Output shapes should be (n + -1,) but are (n,)."),
    "a list": (
        lambda x: (pnp.concatenate([x] * 7), x)[::-1], ["n"], ["7*n", "n"],
        "Output shapes should be [(7 n,), (n,)] but are ((n,), (7 n,)).",
    ),
    "a list of other sizes": (
        lambda x: (x, x), ["n"], ["7*n", "n"],
        "Output shapes should be [(7 n,), (n,)] but are ((n,), (n,)).",
    ),
    "a tuple": (
        lambda x: [x, x], ["n"], ("n", "n"),
        "Output shapes should be ((n,), (n,)) but are [(n,), (n,)].",
    ),
    "a number": (lambda x: x.sum(), ["n"], "3", "Output shapes should be (3,) but are ()."),
    "two names": (
        lambda x: x.T, ["n,m"], "n,m", "Output shapes should be (n, m) but are (m, n)."
    ),
    "a dict": (lambda x: {"a": x}, ["n"], "n", "Output shapes should be (n,) but are {'a': (n,)}."),
}  # fmt: skip


@pytest.mark.feature("B56")
@pytest.mark.parametrize("name", OUT)
def test_results_of_other_shapes(name):
    f, shapes, out, message = OUT[name]
    x = np.ones((5,) * (1 + shapes[0].count(",")))
    with pytest.raises(ShapeError) as e:
        mask(f, shapes, out)([x], {"n": 2, "m": 3})
    assert e.value.what == message


@pytest.mark.feature("B57")
def test_operations_without_a_rule():
    with pytest.raises(MissingRule, match="Masking rule for linalg.schur not implemented yet") as e:
        mask(plait.scipy.linalg.schur, ["n,n"])([np.eye(3)], {"n": 2})
    assert isinstance(e.value, NotImplementedError) and "padding_rules.rule(schur)" in str(e.value)


WRONG = {
    "no function": (ArgumentError, "needs a function", lambda: mask(3, ["n"])),
    "no shapes": (ArgumentError, "in_shapes is None", lambda: mask(same, None)),
    "a number for a shape": (ArgumentError, "a text is expected", lambda: mask(same, [5])),
    "a tuple for a shape": (ArgumentError, "has 3", lambda: mask(same, [("n", 3)])),
    "a number for a result": (ArgumentError, "out_shape has 5", lambda: mask(same, ["n"], 5)),
    "no text of sizes": (ProgramError, "cannot read", lambda: mask(same, ["n$"])([X], {"n": 1})),
    "too few shapes": (
        ArgumentError, "1 shapes for 2", lambda: mask(same, ["n"])([X, X], {"n": 2})
    ),
    "another rank": (
        AxisError, "has no shape 'n,m'", lambda: mask(same, ["n,m"])([X], {"n": 2, "m": 2})
    ),
    "no list": (ArgumentError, "called with ndarray", lambda: mask(same, ["n"])(X, {"n": 2})),
    "no dict": (ArgumentError, "list and int", lambda: mask(same, ["n"])([X], 2)),
    "a name without a size": (
        ArgumentError, "nothing says what m is", lambda: mask(same, ["m"])([X], {"n": 2})
    ),
    "too many": (ShapeError, "n is 6", lambda: mask(same, ["n"])([X], {"n": 6})),
    "too many in an array": (
        ShapeError, "n is 6", lambda: mask(same, ["n"])([X], {"n": pnp.asarray(6)})
    ),
    "negative": (ShapeError, "n is -1", lambda: mask(same, ["n"])([X], {"n": np.int64(-1)})),
    "no integer": (ArgumentError, "n is f32", lambda: mask(same, ["n"])([X], {"n": 2.0})),
    "a vector": (ArgumentError, "n is i", lambda: mask(same, ["n"])([X], {"n": np.arange(1)})),
    "not padded alike": (
        ShapeError, "n is expected, which is 5",
        lambda: mask(lambda x, y: x + y, ["n", "n"])([X, Y], {"n": 2}),
    ),
    "an odd size": (ShapeError, r"2\*n", lambda: mask(same, ["2*n"])([X], {"n": 2})),
    "another number": (ShapeError, "5 where 3", lambda: mask(same, ["3"])([X], {})),
    "sizes that are not found": (
        ShapeError, "do not determine", lambda: mask(same, ["n*m"])([X], {"n": 1, "m": 1})
    ),
    "no arrays": (PlaitError, "not an array", lambda: mask(same, ["n"])([same], {"n": 1})),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input(name):
    """Refused in the user's line, with what to write instead."""
    kind, message, call = WRONG[name]
    with pytest.raises(kind, match=message) as e:
        call()
    assert __file__ in str(e.value) and e.value.fix
