"""Observers inside every operation with programs: what they are given, and what they find.

Invariant: what is found is compared with a Python loop that runs the same body as often.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import P, Pile, ext, lax, pile_axis
from plait.ext.ops.control_flow import call

X = np.float32([0.1, 0.4, 0.3, 0.2])


@ext.primitive("observed.mark", traits=(ext.Elementwise,))
def mark(x: ext.Aval) -> ext.Aval:
    """Return x: an operation to observe."""
    return x


ext.expand_rules.rule(mark)(lambda x: x)
ext.eager_rules.rule(mark)(lambda args, params: args[0])


class Marks(ext.observers.Observer):
    """Looks at marks only."""

    does = "marks"

    def looks_at(self, prim, params):
        return prim is mark


class Sums(Marks):
    """The number of marks and the sum of marked values, carried by loops or summed after them."""

    def nothing(self):
        return {"n": pnp.int32(0), "sum": pnp.float32(0)}

    def join(self, found, more):
        return plait.tree.map(lambda a, b: a + b, found, more)

    def stacked(self, found, count):
        return plait.tree.map(lambda a: a.sum(0).astype(a.dtype), found)

    def see(self, prim, args, params):
        self.found = self.join(self.found, {"n": pnp.int32(1), "sum": args[0].sum()})
        return prim.bind(*args, **params)


class Folded(Sums):
    folds = True


class Reap(Marks):
    """The marked values."""

    def see(self, prim, args, params):
        self.found = self.join(self.found, {"value": args[0]})
        return prim.bind(*args, **params)


class Plant(Marks):
    """Adds to marked values: the runs of a loop, and the devices, are given a row each."""

    def see(self, prim, args, params):
        return mark.bind(args[0] + self.given)

    def rows(self, given, program, count):
        if count is None:
            return None
        return pnp.broadcast_to(given, (count, *given.shape)) * pnp.arange(count)

    def next(self, given):
        return given, given + 1.0


def observed(kind, f, given=None):
    def g(*args):
        with ext.opened(kind(given, f)) as o:
            out = f(*args)
        return out, o.found

    return g


def body(x):
    return mark.bind(ext.as_value(pnp.tanh(x))) * 2.0


def trail(n, x=X):
    """The marked values of n turns of the body, and the last result."""
    seen = []
    for _ in range(n):
        seen.append(np.tanh(x))
        x = np.tanh(x) * 2
    return seen, x


@plait.custom_vmap
def mapped(x):
    return body(x)


mapped.def_vmap(lambda n, batched, x: (body(x), True))


@plait.custom_vjp
def ruled(x):
    return body(x)


ruled.defvjp(lambda x: (body(x), None), lambda r, ct: (ct,))


def mesh():
    return plait.make_mesh((4,), ("d",))


def while_asking(x):
    """The predicate has a mark: it is asked once more than the body runs."""
    more = lambda s: mark.bind(s[0].astype(np.float32)) < 3
    return lax.while_loop(more, lambda s: (s[0] + 1, s[1] * 2), (0, x))[1]


once = ([np.tanh(X)], 2 * np.tanh(X))
WAYS = {
    "plain": (body, once),
    "jit": (plait.jit(body), once),
    "checkpoint": (plait.checkpoint(body), once),
    "scan": (lambda x: lax.scan(lambda c, _: (body(c), None), x, None, 3)[0], trail(3)),
    "rows": (lambda x: lax.scan(lambda c, r: (c, body(r)), 0.0, x)[1], ([*np.tanh(X)], once[1])),
    "backwards": (
        lambda x: lax.scan(lambda c, r: (c, body(r)), 0.0, x, reverse=True)[1],
        ([*np.tanh(X)], once[1]),
    ),
    "fori": (lambda x: lax.fori_loop(0, 3, lambda i, y: body(y), x), trail(3)),
    "while": (
        lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, body(s[1])), (0, x))[1],
        trail(3),
    ),
    "while asking": (while_asking, ([np.float32(i) for i in range(4)], 8 * X)),
    "scan in while": (
        lambda x: lax.while_loop(
            lambda s: s[0] < 2,
            lambda s: (s[0] + 1, lax.scan(lambda c, _: (body(c), None), s[1], None, 2)[0]),
            (0, x),
        )[1],
        trail(4),
    ),
    "cond": (lambda x: lax.cond(pnp.array(True), body, lambda x: x, x), once),
    "cond, other": (lambda x: lax.cond(x[0] > 9, body, lambda x: x, x), ([], X)),
    "switch": (lambda x: lax.switch(pnp.array(1), [lambda x: x, body, body], x), once),
    "map": (lambda x: lax.map(body, x), ([*np.tanh(X)], once[1])),
    "vmap": (lambda x: plait.vmap(body)(x), once),
    "axis": (
        lambda x: plait.vmap(lambda y: lax.psum(body(y), "i"), axis_name="i")(x),
        (once[0], np.full(4, once[1].sum())),
    ),
    "shard_map": (
        lambda x: plait.shard_map(body, mesh=mesh(), in_specs=P("d"), out_specs=P("d"))(x),
        ([*np.tanh(X)], once[1]),
    ),
    "pmap": (lambda x: plait.pmap(body)(x), ([*np.tanh(X)], once[1])),
    "pile": (
        lambda x: plait.vmap(lambda v: body(v.sum()), pile_axis)(Pile(x, np.array([3, 1]))),
        ([np.tanh(X[:3].sum()), np.tanh(X[3])], 2 * np.tanh([X[:3].sum(), X[3]])),
    ),
    "solve": (
        lambda x: lax.custom_linear_solve(lambda v: 2.0 * v, x, lambda mv, c: body(c)),
        once,
    ),
    "custom_vmap": (lambda x: mapped(x), once),
    "custom_vjp": (lambda x: ruled(x), once),
    "associative": (
        lambda x: lax.associative_scan(lambda p, q: body(p) + q, x[:2]),
        ([np.tanh(X[:1])], np.array([X[0], 2 * np.tanh(X[0]) + X[1]])),
    ),
}
UNCOUNTED = ("while", "while asking", "scan in while")
LOST = ("custom_vmap", "custom_vjp")


def lossy(name):
    if name in LOST:
        return pytest.warns(plait.errors.RuleLost, match="lost the")
    return pytest.MonkeyPatch.context()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", [Sums, Folded], ids=["stacked", "folded"])
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("name", WAYS)
def test_every_run_counts(name, compiled, kind):
    f, (seen, want) = WAYS[name]
    g = observed(kind, f)
    with lossy(name):
        out, found = (plait.jit(g) if compiled else g)(X)
    np.testing.assert_allclose(np.asarray(out), want, rtol=1e-5)
    assert int(found["n"]) == len(seen)
    np.testing.assert_allclose(float(found["sum"]), sum(np.sum(s) for s in seen), rtol=1e-5)


def alone(name):
    """Return whether the ways of `name` find the same keys, in a known number of runs."""
    return name not in (*UNCOUNTED, "cond", "cond, other", "switch")


@pytest.mark.parametrize("name", [n for n in WAYS if alone(n)])
def test_values_are_stacked(name):
    f, (seen, _) = WAYS[name]
    with lossy(name):
        found = plait.jit(observed(Reap, f))(X)[1]["value"]
    each = np.asarray(found).reshape(len(seen), *seen[0].shape)
    np.testing.assert_allclose(each, np.stack(seen), rtol=1e-5)


@pytest.mark.parametrize("name", [n for n in WAYS if not alone(n)])
def test_trees_that_differ_are_refused(name):
    """Values by name cannot be stacked where the number of turns depends on values."""
    with pytest.raises(plait.errors.ArgumentError, match="different structure|are named"):
        observed(Reap, WAYS[name][0])(X)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("jit", [1]),
        ("cond", [1]),
        ("rows", [0, 1, 2, 3]),
        ("map", [0, 1, 2, 3]),
        ("shard_map", [0, 1, 2, 3]),
    ],
)
@pytest.mark.parametrize("way", [lambda f: f, plait.jit], ids=["eager", "jit"])
def test_runs_are_given_rows(name, given, way):
    run = way(lambda g, x: observed(Plant, WAYS[name][0], g)(x)[0])
    want = 2 * (np.tanh(X) + np.float32(given))
    np.testing.assert_allclose(run(pnp.float32(1), X), want, rtol=1e-5)


def test_turns_pass_on_what_they_are_given():
    run = lambda g: observed(Plant, WAYS["while"][0], g)(X)[0]
    want = X
    for i in range(3):
        want = 2 * (np.tanh(want) + 1 + i)
    np.testing.assert_allclose(run(pnp.float32(1)), want, rtol=1e-5)
    slope = plait.jit(plait.jacfwd(run))(pnp.float32(1))
    ends = [np.asarray(run(pnp.float32(1 + d))) for d in (-1e-2, 1e-2)]
    np.testing.assert_allclose(slope, (ends[1] - ends[0]) / 2e-2, rtol=1e-2)


def test_observers_know_how_often_a_program_runs():
    log = []

    class Times(Marks):
        def see(self, prim, args, params):
            log.append((self.times, tuple(r.kind for r in self.runs)))
            return prim.bind(*args, **params)

    inner = lambda c, _: (lax.cond(c[0] > 9, body, lambda x: x, body(c)), None)
    f = lambda x: lax.map(lambda r: lax.scan(inner, r[None], None, 5)[0], x)
    observed(Times, f)(X)
    turns = ("turns", "turns")
    assert sorted(log) == sorted([(20, turns), (20, (*turns, "choice"))])
    log.clear()
    observed(Times, WAYS["while"][0])(X)
    assert log == [(None, ("turns",))]


TOTAL = lambda f: lambda x: observed(Sums, f)(x)[1]["sum"]


@pytest.mark.parametrize("name", ["jit", "scan", "cond", "map", "shard_map", "solve"])
def test_what_is_found_is_differentiated(name):
    total = TOTAL(WAYS[name][0])
    got = plait.jit(plait.grad(total))(X)
    for k in range(4):
        d = np.eye(4, dtype="f")[k] * 1e-2
        want = (float(total(X + d)) - float(total(X - d))) / 2e-2
        np.testing.assert_allclose(got[k], want, rtol=2e-2, atol=1e-3)


@pytest.mark.parametrize("name", ["jit", "scan", "while", "cond", "rows", "solve"])
def test_observed_under_transformations(name):
    total, want = TOTAL(WAYS[name][0]), sum(np.sum(s) for s in WAYS[name][1][0])
    wide = np.asarray(plait.vmap(total)(np.stack([X * 0, X])))
    np.testing.assert_allclose(wide[1], want, rtol=1e-5)
    steps = lax.scan(lambda c, _: (c, total(c)), X, None, 2)[1]
    np.testing.assert_allclose(steps, [want, want], rtol=1e-5)
    chosen = lax.cond(pnp.array(True), total, lambda x: x.sum() * 0, X)
    np.testing.assert_allclose(chosen, want, rtol=1e-5)
    pieces = plait.shard_map(
        lambda x: total(x[0])[None], mesh=mesh(), in_specs=P("d"), out_specs=P("d")
    )(np.stack([X] * 4))
    np.testing.assert_allclose(pieces, [want] * 4, rtol=1e-5)
    file = plait.export.export(plait.jit(total))(X).serialize()
    np.testing.assert_allclose(plait.export.deserialize(file).call(X), want, rtol=1e-5)


def test_observers_inside_observers():
    """Each sees the marks, and the outer one the operations by which the inner one counts."""
    f = WAYS["scan in while"][0]
    (out, inner), outer = observed(Sums, observed(Folded, f))(X)
    assert int(inner["n"]) == int(outer["n"]) == 4
    np.testing.assert_allclose(out, WAYS["scan in while"][1][1], rtol=1e-5)


class Odd(ext.Wiring):
    """A wiring of a stranger's: nothing says how often the program runs."""


odd = ext.Primitive("observed.odd", lambda *xs, program: program.out_avals, many=True, higher=Odd())
ext.expand_rules.rule(odd)(lambda *xs, program: call.bind(*xs, program=program))


def test_operations_of_strangers_need_a_rule():
    def f(x):
        program, captured = ext.stage(lambda x: [body(x)], [ext.as_value(x).aval])
        return odd.bind(*captured, x, program=program)[0]

    with pytest.raises(plait.errors.MissingRule, match=r"marks: the table 'runs'.*\n.*\n.*odd"):
        observed(Sums, f)(X)


@pytest.mark.parametrize("way", [lambda f: f, plait.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("lengths", [(3, 1), (1, 2, 1)], ids=str)
def test_rows_of_examples_of_several_sizes_are_refused(lengths, way):
    """Also where an operation runs on groups of examples of equal sizes."""

    def f(x):
        rows = plait.vmap(lambda v: mark(v) * 2.0, pile_axis, pile_axis)
        return rows(Pile(x, np.array(lengths))).data

    with pytest.raises(plait.errors.ArgumentError, match="differs from example to example"):
        way(observed(Reap, f))(X)
    sums = lambda x: plait.vmap(lambda v: mark(v.sum()), pile_axis)(Pile(x, np.array(lengths)))
    ends = np.cumsum(lengths)
    want = [X[b - n : b].sum() for b, n in zip(ends, lengths)]
    np.testing.assert_allclose(way(observed(Reap, sums))(X)[1]["value"], want, rtol=1e-6)
