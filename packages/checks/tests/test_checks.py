"""`plait.checks`: errors that compiled functions return.

KINDS was written down from what jax 0.10.2's `checkify` answers for the same programs.

Invariant: which error is expected is written here, or told by a plain loop, and never computed by
Plait.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import checks, lax
from plait.checks import check, check_error, checkify

inf, nan = np.inf, np.nan
U, N, I, D = checks.user_checks, checks.nan_checks, checks.index_checks, checks.div_checks  # noqa: E741
F, AUTO, ALL = checks.float_checks, checks.automatic_checks, checks.all_checks


def positive(x):
    check(x > 0, "pos {}", x)
    return x


def two(x, y):
    check(x > 0, "first {}", x)
    check(y > 0, "second {}", y)
    return x + y


def keywords(x):
    check((x < 3).all(), "sum {s} of {}", x[0], s=x.sum())


def branches(p, x):
    def yes(x):
        check(x > 1, "one {}", x)
        return x

    def no(x):
        check(x > 2, "two {}", x)
        return x + 1

    return lax.cond(p, yes, no, x)


def of_three(i, x):
    return lax.switch(i, [lambda x: x, positive, lambda x: (check(x < 9, "nine"), x)[1]], x)


def steps(x, xs):
    def body(c, t):
        check(c < 3, "c {c} t {t}", c=c, t=t)
        return c + t, c

    return lax.scan(body, x, xs)


def in_order(x):
    def body(c, t):
        check(t != 2, "two")
        check(t != 1, "one")
        return c + t, None

    return lax.scan(body, x, pnp.arange(4))


def until(x):
    def more(c):
        check(c != 5, "five")
        return c < 8

    def body(c):
        check(c != 6, "six {}", c)
        return c + 1

    return lax.while_loop(more, body, x)


def doubling(x):
    def body(i, c):
        check(c < 10, "c {} at {}", c, i)
        return c * 2

    return lax.fori_loop(0, 5, body, x)


USER = [
    (positive, (1.0,), None), (positive, (-1.0,), "pos -1.0"),
    (plait.jit(positive), (-1.0,), "pos -1.0"),
    (two, (1.0, 1.0), None), (two, (-1.0, 1.0), "first -1.0"), (two, (1.0, -1.0), "second -1.0"),
    (two, (-1.0, -1.0), "first -1.0"),
    (keywords, ([1.0, 2.0],), None), (keywords, ([1.0, 5.0],), "sum 6.0 of 1.0"),
    (branches, (True, 0.5), "one 0.5"), (branches, (False, 0.5), "two 0.5"),
    (branches, (True, 1.5), None), (branches, (False, 1.5), "two 1.5"),
    (of_three, (0, -1.0), None), (of_three, (1, -1.0), "pos -1.0"), (of_three, (2, 10.0), "nine"),
    (steps, (0.0, [0.0, 1.0, 2.0, 3.0]), "c 3.0 t 3.0"), (steps, (0.0, [0.0, 1.0, 1.0]), None),
    (steps, (4.0, [1.0, 1.0]), "c 4.0 t 1.0"), (steps, (0.0, np.zeros(0)), None),
    (in_order, (0,), "one"),
    (until, (0,), "five"), (until, (6,), "six 6"), (until, (7,), None), (until, (9,), None),
    (until, (5,), "five"),
    (doubling, (0,), None), (doubling, (1,), "c 16 at 4"), (doubling, (20,), "c 20 at 0"),
    (lambda xs: lax.map(positive, xs), ([1.0, -1.0, -2.0],), "pos -1.0"),
    (lambda xs: lax.map(positive, xs), ([1.0, 2.0],), None),
]  # fmt: skip
NAN = {
    "log": (N, lambda x: pnp.log(x), [((1.0,), 0), ((-1.0,), N), ((0.0,), 0), (([1.0, -1.0],), N)]),
    "sqrt": (N, lambda x: pnp.sqrt(x), [((-1.0,), N), ((1.0,), 0)]),
    "difference": (N, lambda x: x - x, [((inf,), N), ((1.0,), 0)]),
    "quotient": (N, lambda x, y: x / y, [((0.0, 0.0), N), ((1.0, 0.0), 0)]),
    "given": (N, lambda x: x * 2, [((nan,), N), ((1.0,), 0)]),
    "selected": (N, lambda x: pnp.where(x > 0, x, 0.0), [((nan,), 0), ((1.0,), 0)]),
    "dropped": (N, lambda x: pnp.where(x > 0, pnp.log(x), 0.0), [((-1.0,), N), ((1.0,), 0)]),
    "mean": (N, lambda x: x.mean(), [((np.zeros(0),), N), (([1.0, 2.0],), 0)]),
    "dot": (N, lambda x: x @ x, [(([inf, 0.0],), 0), (([1.0, 2.0],), 0)]),
    "dots": (N, lambda x, y: x @ y, [(([inf, 1.0], [0.0, 1.0]), N)]),
    "softmax": (
        N, lambda x: plait.nn.softmax(x), [(([1.0, 2.0],), 0), (([inf, 1.0],), N)],
    ),
    "power": (N, lambda x, y: x**y, [((-1.0, 0.5), N), ((2.0, 0.5), 0), ((0.0, -1.0), 0)]),
    "arcsin": (N, lambda x: pnp.arcsin(x), [((2.0,), N), ((0.5,), 0)]),
    "scan": (
        N, lambda x: lax.scan(lambda c, t: (pnp.log(c), c), x, pnp.arange(5)), [((100.0,), N)],
    ),
    "while": (
        N, lambda x: lax.while_loop(lambda c: c > -5, lambda c: pnp.log(c) - 1, x), [((1.0,), N)],
    ),
    "cond": (
        N, lambda p, x: lax.cond(p, pnp.log, pnp.sin, x), [((True, -1.0), N), ((False, -1.0), 0)],
    ),
    "reshape": (N, lambda x: x.reshape(2, 1), [(([nan, 1.0],), 0)]),
    "cumsum": (N, lambda x: pnp.cumsum(x), [(([inf, -inf],), N), (([1.0, 2.0],), 0)]),
    "variance": (N, lambda x: x.var(ddof=1), [(([1.0],), N), (([1.0, 3.0],), 0)]),
    "fft": (N, lambda x: pnp.fft.fft(x), [(([1.0, 2.0],), 0), (([nan, 1.0],), N)]),
}  # fmt: skip
DIV = {
    "floats": (
        D, lambda x, y: x / y,
        [((1.0, 0.0), D), ((1.0, 2.0), 0), ((0.0, 0.0), D), (([1.0, 2.0], [1.0, 0.0]), D)],
    ),
    "integers": (D, lambda x, y: lax.div(x, y), [((1, 0), D), ((4, 2), 0)]),
    "floor": (D, lambda x, y: x // y, [((1, 0), D), ((4, 2), 0)]),
    "one over": (D, lambda x: 1 / x, [((0.0,), D), ((2.0,), 0)]),
    "scan": (
        D, lambda xs: lax.scan(lambda c, x: (c / x, c), 1.0, xs)[0],
        [(([1.0, 0.0, 2.0],), D), (([1.0, 2.0],), 0)],
    ),
    "nan first": (F, lambda x, y: pnp.log(x) / y, [((-1.0, 0.0), N), ((1.0, 0.0), D)]),
    "zero first": (F, lambda x, y: (x / y, pnp.log(x)), [((-1.0, 0.0), D), ((-1.0, 1.0), N)]),
}  # fmt: skip
X2, X3 = [1.0, 2.0], [1.0, 2.0, 3.0]
INDEX = {
    "one": (
        I, lambda x, i: x[i], [((X2, 0), 0), ((X2, 5), I), ((X2, -1), 0), ((X2, -2), 0),
                               ((X2, -5), I)],
    ),
    "many": (
        I, lambda x, i: x[i], [((X3, [0, 1]), 0), ((X3, [0, 7]), I), ((X3, [-1, -3]), 0),
                               ((X3, [-4, 0]), I)],
    ),
    "two": (
        I, lambda i, j: pnp.ones((2, 3))[i, j], [((1, 2), 0), ((2, 0), I), ((0, 3), I)],
    ),
    "set": (
        I, lambda x, i: x.at[i].set(1.0), [((X2, 0), 0), ((X2, 2), I), ((X2, -3), I)],
    ),
    "add": (I, lambda x, i: x.at[i].add(1.0), [((X2, [0, 1]), 0), ((X2, [0, 2]), I)]),
    "fill": (I, lambda x, i: x.at[i].get(mode="fill"), [((X2, 0), 0), ((X2, 7), I)]),
    "take": (I, lambda x, i: pnp.take(x, i, axis=0), [((X2, 0), 0), ((X2, 7), I)]),
    "clip": (
        I, lambda x, i: pnp.take(x, i, axis=0, mode="clip"), [((X2, 0), 0), ((X2, 7), I)],
    ),
    "wrap": (
        I, lambda x, i: pnp.take(x, i, axis=0, mode="wrap"), [((X2, 0), 0), ((X2, 7), 0)],
    ),
    "along": (I, lambda x, i: pnp.take_along_axis(x, i, 0), [((X2, [0, 1]), 0), ((X2, [0, 4]), I)]),
    "slice": (
        I, lambda x, i: lax.dynamic_slice(x, (i,), (2,)), [((X3, 1), 0), ((X3, 2), I),
                                                           ((X3, -1), I)],
    ),
    "update": (
        I, lambda x, i: lax.dynamic_update_slice(x, pnp.zeros(2), (i,)), [((X3, 1), 0),
                                                                          ((X3, 2), I)],
    ),
    "scan": (
        I, lambda x: lax.scan(lambda c, i: (c + x[i], None), 0.0, pnp.arange(4))[0],
        [((X2,), I), (([1.0, 2.0, 3.0, 4.0],), 0)],
    ),
    "index first": (
        AUTO, lambda x, i: pnp.log(x[i]), [(([-1.0, 1.0], 0), N), (([-1.0, 1.0], 9), I),
                                           (([-1.0, 1.0], 1), 0)],
    ),
    "nan first": (
        AUTO, lambda x, i: pnp.log(x)[i], [(([-1.0, 1.0], 9), N), (([2.0, 1.0], 9), I)],
    ),
    "one hot": (AUTO, lambda i: plait.nn.one_hot(i, 3), [((1,), 0), ((7,), 0)]),
    "integers": (ALL, lambda x: x * 2 + 1, [((3,), 0)]),
}  # fmt: skip
KINDS = [
    pytest.param(errors, f, args, kind, id=f"{name}-{i}")
    for table in (NAN, DIV, INDEX)
    for name, (errors, f, calls) in table.items()
    for i, (args, kind) in enumerate(calls)
]


def arrays(args):
    return [pnp.asarray(a) for a in args]


@pytest.mark.parametrize("compiled", [False, True], ids=["as it is", "jit"])
@pytest.mark.parametrize("f, args, want", USER)
def test_which_condition_failed_first(f, args, want, compiled):
    g = checkify(f)
    error, _ = (plait.jit(g) if compiled else g)(*arrays(args))
    assert error.get() == want


@pytest.mark.sampled(16)
@pytest.mark.parametrize("errors, f, args, kind", KINDS)
def test_which_kind_of_error_came_first(errors, f, args, kind):
    error, out = plait.jit(checkify(f, errors=errors))(*arrays(args))
    found = error.get_exception()
    assert (type(found) if found else None) is (next(iter(kind)) if kind else None)
    for a, b in zip(plait.tree.leaves(out), plait.tree.leaves(f(*arrays(args))), strict=True):
        np.testing.assert_array_equal(a, b)  # results are those of the function


WAYS = {
    "read": (lambda x, i: x[i], lambda x, i: x[i]),
    "read last": (lambda x, i: x[..., i], lambda x, i: x[..., i]),
    "read beside a slice": (lambda x, i: x[i, :], lambda x, i: x[i, :]),
    "read two": (lambda x, i: x[i, 0], lambda x, i: x[i, 0]),
    "get": (lambda x, i: x.at[i].get(), lambda x, i: x[i]),
    "fill": (lambda x, i: x.at[i].get(mode="fill"), lambda x, i: x[i]),
    "clip": (lambda x, i: x.at[i].get(mode="clip"), lambda x, i: x[i]),
    "pair": (lambda x, i: x[pnp.stack([i, i])], lambda x, i: x[np.stack([i, i])]),
    "take": (lambda x, i: pnp.take(x, i, axis=1), lambda x, i: np.take(x, i, axis=1)),
    "set": (lambda x, i: x.at[i].set(7.0), lambda x, i: x[i]),
    "set last": (lambda x, i: x.at[..., i].set(7.0), lambda x, i: x[..., i]),
    "add": (lambda x, i: x.at[i].add(7.0), lambda x, i: x[i]),
}


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (2, 1), (2, 3)])
@pytest.mark.parametrize("ours, numpys", WAYS.values(), ids=WAYS)
def test_an_index_is_outside_where_numpy_raises(ours, numpys, shape):
    # An axis of size 1 leaves no choice of element, but an index into it can still be outside.
    x = np.ones(shape, np.float32)
    checked = plait.jit(checkify(ours, errors=I))
    for i in (-4, -3, -2, -1, 0, 1, 2, 3):
        try:
            numpys(x, np.int32(i))
        except IndexError:
            want = True
        else:
            want = False
        error, _ = checked(pnp.asarray(x), pnp.int32(i))
        assert (error.get() is not None) == want, (i, error.get())


def test_a_nan_is_found_where_numpy_finds_one():
    def chain(x):
        for f in (pnp.log, pnp.sqrt, pnp.arcsin):
            x = f(x)
        return x

    def first(x):
        with np.errstate(all="ignore"):
            for name, f in (("log", np.log), ("sqrt", np.sqrt), ("asin", np.arcsin)):
                x = f(np.float32(x))
                if np.isnan(x):
                    return name
        return None

    g = plait.jit(checkify(chain, errors=N))
    seen = set()
    for x in (-1.0, 0.5, 1.5, 3.0, 1.0, 20.0):
        text, want = g(x)[0].get(), first(x)
        assert (text is None) == (want is None) and (text is None or f"core.{want} " in text)
        seen.add(want)
    assert seen == {"log", "sqrt", "asin", None}


def test_the_first_failing_turn_is_that_of_a_plain_loop():
    rng = np.random.default_rng(0)
    g = plait.jit(checkify(steps))
    for _ in range(20):
        xs = rng.integers(0, 3, 6).astype("float32")
        c, want = np.float32(0), None
        for t in xs:
            if want is None and not c < 3:
                want = f"c {c} t {t}"
            c += t
        error, (end, _) = g(pnp.asarray(0.0), pnp.asarray(xs))
        assert error.get() == want and float(end) == c


def test_the_line_of_the_check_is_named():
    error, _ = plait.jit(checkify(positive))(-1.0)
    line = positive.__code__.co_firstlineno + 1
    with pytest.raises(checks.FailedCheckError, match=rf"test_checks.py:{line}") as e:
        error.throw()
    assert isinstance(e.value, ValueError)

    def logs(x):
        return pnp.sin(pnp.log(x))

    error, _ = checkify(logs, errors=N)(-1.0)
    with pytest.raises(
        FloatingPointError, match=rf"test_checks.py:{logs.__code__.co_firstlineno + 1}"
    ):
        error.throw()


def test_nothing_is_thrown_where_nothing_is_wrong():
    error, y = checkify(positive)(2.0)
    assert error.throw() is None and error.get_exception() is None and float(y) == 2.0
    assert checks.init_error.get() is None
    check_error(error)
    check_error(checks.init_error)


def test_known_values_raise_at_once():
    with pytest.raises(checks.FailedCheckError, match="pos -1.0"):
        positive(-1.0)
    error, _ = checkify(positive)(-1.0)
    with pytest.raises(checks.FailedCheckError, match="pos -1.0"):
        check_error(error)


def test_compiled_without_collecting_is_refused_and_a_debug_check_left_out():
    with pytest.raises(plait.errors.ArgumentError, match="no checkify collects") as e:
        plait.jit(positive)(1.0)
    assert "checkify" in str(e.value) and "test_checks.py" in str(e.value)
    with pytest.raises(plait.PlaitError, match="no checkify collects"):
        plait.jit(checkify(positive, errors=N))(1.0)

    def f(x):
        checks.debug_check(x > 0, "x {}", x)
        return x

    assert float(plait.jit(f)(-1.0)) == -1.0
    assert plait.jit(checkify(f))(-1.0)[0].get() == "x -1.0"


def test_kinds_that_nobody_looks_for_are_left_to_others():
    inner = checkify(lambda x: pnp.log(positive(x)), errors=N)
    outer = checkify(lambda x: inner(x)[0].code, errors=U)
    assert plait.jit(outer)(-1.0)[0].get() == "pos -1.0"
    with pytest.raises(checks.FailedCheckError):
        inner(-1.0)
    error, _ = inner(2.0)
    assert error.get() is None


def test_errors_go_through_functions_as_trees():
    def f(x):
        error, y = checkify(positive)(x)
        check_error(error)
        return y

    assert plait.jit(checkify(f))(-1.0)[0].get() == "pos -1.0"
    assert plait.jit(checkify(f))(1.0)[0].get() is None
    error, _ = checkify(positive)(-3.0)
    again = plait.jit(lambda e: e)(error)
    assert again.get() == "pos -3.0"
    both = lambda x: (check_error(error), positive(x))[1]
    assert checkify(both)(-1.0)[0].get() == "pos -3.0"


def test_bounded_loops_keep_their_bound():
    def f(x):
        return lax.while_loop(lambda c: c < 100, lambda c: (check(c < 3, "c {}", c), c + 1)[1], x,
                              max_steps=2)  # fmt: skip

    assert [checkify(f)(x)[0].get() for x in (0, 2, 5)] == [None, "c 3", "c 5"]


def test_sizes_may_be_known_by_name():
    (n,) = plait.symbolic_dims("n")
    f = plait.jit(checkify(lambda x, i: x[i], errors=ALL))
    text = f.lower(plait.ShapeDtypeStruct((n,), "float32"), np.int32(0)).as_text()
    assert "compare" in text


def test_nothing_to_check_changes_nothing():
    error, y = checkify(lambda x: {"a": x, "b": (x + 1, 2)})(1.0)
    assert error.get() is None and float(y["b"][0]) == 2.0 and not error.payload
    error, y = checkify(lambda: 3.0)()
    assert error.get() is None and float(y) == 3.0


@pytest.mark.parametrize(
    "act, words",
    [
        (lambda: check(pnp.ones(2) > 0, "x"), "without axes"),
        (lambda: check(1.0, "x"), "without axes"),
        (lambda: check(True, 3), "format string"),
        (lambda: check(True, "{} {}", 1.0), "does not fit"),
        (lambda: check(True, "{a}", 1.0), "does not fit"),
        (lambda: checkify(3), "not a function"),
        (lambda: checkify(positive, errors=[ValueError]), "no errors of the kind"),
        (lambda: check_error(3), "takes an Error"),
        (lambda: check(True, "{}", plait.random.key(0)), "key"),
    ],
)
def test_mistakes(act, words):
    with pytest.raises(plait.errors.ArgumentError, match=words):
        act()


def test_static_arguments_of_checked_functions():
    def f(x, how, times, up):
        for _ in range(times):
            checks.check(x > 0, "bad {}", x)
            x = x * 2 if up else x - 1
        return x.astype(how)

    for run in (plait.jit(checks.checkify(f), static_argnums=(1, 2, 3)), checks.checkify(f)):
        for times, up, want, error in (
            (2, True, 12, None), (1, False, 2, None), (1, True, 6, None), (4, False, -1, "bad 0"),
        ):  # fmt: skip
            for how in ("int32", "float32"):
                found, got = run(np.int32(3), how, times, up)
                assert got == want and got.dtype == how
                assert found.get() == error
