"""Which functions can be traced where a size n, of at least 0, is known by name only.

Each function of the surfaces is called in many ways, as far as arrays of 5 can be given to it in
that way; then it must trace for n too, and say so of what it gives: the shapes are those of 5, 6
and 7 with n for these.

Invariant: what is refused is in a list here, with what the error says of the size.
"""

import re
import warnings

import pytest

import plait
import plait.numpy as pnp
from plait import lax, nn, random
from plait.errors import PlaitError
from plait.ext.sizes import Scope, symbolic_dims

(N,) = symbolic_dims("n", Scope([], lower=0))
SURFACES = {"numpy": pnp, "numpy.linalg": pnp.linalg, "numpy.fft": pnp.fft, "lax": lax, "nn": nn,
            "random": random}  # fmt: skip
V, M, Q = ("n",), ("n", 4), ("n", "n")
F, I, B = "float32", "int32", "bool"
KEY = random.key(0)

WAYS = {
    **{f"({kind} {s})": (lambda f, x: f(x), [(s, kind)]) for kind in (F, I, B) for s in (V, M, Q)},
    **{f"({kind} {s}) twice": (lambda f, x, y: f(x, y), [(s, kind)] * 2)
       for kind in (F, I, B) for s in (V, M, Q)},
    "axis=0": (lambda f, x: f(x, axis=0), [(M, F)]),
    "axis=1": (lambda f, x: f(x, axis=1), [(M, F)]),
    "axis=None": (lambda f, x: f(x, axis=None), [(M, F)]),
    "m, 0": (lambda f, x: f(x, 0), [(M, F)]),
    "m, 2": (lambda f, x: f(x, 2), [(M, F)]),
    "v, 2": (lambda f, x: f(x, 2), [(V, F)]),
    "i, 1": (lambda f, x: f(x, 1), [(V, I)]),
    "m, 0, 1": (lambda f, x: f(x, 0, 1), [(M, F)]),
    "m, (0, 1)": (lambda f, x: f(x, (0, 1)), [(M, F)]),
    "m, (1, 2)": (lambda f, x: f(x, (1, 2)), [(M, F)]),
    "m, 1, axis=0": (lambda f, x: f(x, 1, axis=0), [(M, F)]),
    "v, .3": (lambda f, x: f(x, 0.3), [(V, F)]),
    "m, .3, axis=0": (lambda f, x: f(x, 0.3, axis=0), [(M, F)]),
    "v, i": (lambda f, x, i: f(x, i), [(V, F), (V, I)]),
    "m, i, axis=0": (lambda f, x, i: f(x, i, axis=0), [(M, F), (M, I)]),
    "b, v": (lambda f, b, x: f(b, x), [(V, B), (V, F)]),
    "b, v, v": (lambda f, b, x, y: f(b, x, y), [(V, B), (V, F), (V, F)]),
    "v, v, v": (lambda f, *xs: f(*xs), [(V, F)] * 3),
    "0, 1, v": (lambda f, x: f(0.0, 1.0, x), [(V, F)]),
    "v, 0, 1": (lambda f, x: f(x, 0.0, 1.0), [(V, F)]),
    "[v, v]": (lambda f, x, y: f([x, y]), [(V, F)] * 2),
    "[m, m]": (lambda f, x, y: f([x, y]), [(M, F)] * 2),
    "[m, m], 0": (lambda f, x, y: f([x, y], 0), [(M, F)] * 2),
    "v, three": (lambda f, x: f(x, pnp.ones(3)), [(V, F)]),
    "m, four": (lambda f, x: f(x, pnp.ones(4)), [(M, F)]),
    "m, matrix": (lambda f, x: f(x, pnp.ones((4, 4))), [(M, F)]),
    "q, m": (lambda f, x, y: f(x, y), [(Q, F), (M, F)]),
    "q, v": (lambda f, x, y: f(x, y), [(Q, F), (V, F)]),
    "size=3": (lambda f, x: f(x, size=3), [(V, I)]),
    "v, v, size=3": (lambda f, x, y: f(x, y, size=3), [(V, I)] * 2),
    "length=3": (lambda f, x: f(x, length=3), [(V, I)]),
    "v, v, v, v": (lambda f, *xs: f(*xs), [(V, F)] * 4),
    "q, k, v": (lambda f, *xs: f(*xs), [((2, "n", 3, 4), F)] * 3),
    "key, (n,)": (lambda f, x: f(KEY, x.shape), [(V, F)]),
    "key, shape=(n,)": (lambda f, x: f(KEY, shape=x.shape), [(V, F)]),
    "key, v": (lambda f, x: f(KEY, x), [(V, F)]),
    "key, m": (lambda f, x: f(KEY, x), [(M, F)]),
    "key, v, (2,)": (lambda f, x: f(KEY, x, (2,)), [(V, F)]),
    "key, v, (n,)": (lambda f, x: f(KEY, x, x.shape), [(V, F)]),
    "key, v, v": (lambda f, x, y: f(KEY, x, y), [(V, F)] * 2),
    "key, .5, (n,)": (lambda f, x: f(KEY, 0.5, x.shape), [(V, F)]),
    "key, .5, .7, (n,)": (lambda f, x: f(KEY, 0.5, 0.7, x.shape), [(V, F)]),
    "key, (n,), 0, 9": (lambda f, x: f(KEY, x.shape, 0, 9), [(V, F)]),
}  # fmt: skip
OF_SHAPES = {
    "n": lambda f, n: f(n), "(n,)": lambda f, n: f((n,)), "(n, 5)": lambda f, n: f((n, 5)),
    "0, 1, n": lambda f, n: f(0.0, 1.0, n), "(n,), 2.": lambda f, n: f((n,), 2.0),
    "key, n": lambda f, n: f(KEY, n), "key, n, (2,)": lambda f, n: f(KEY, n, (2,)),
    "zeros, n": lambda f, n: f(pnp.zeros(3, I), n), "0, n": lambda f, n: f(0, n),
}  # fmt: skip
TAKE_SHAPES = {
    "numpy.arange": ["n", "0, n"], "numpy.eye": ["n", "0, n"], "numpy.identity": ["n"],
    "numpy.tri": ["n"], "numpy.zeros": ["n", "(n, 5)"], "numpy.ones": ["n", "(n, 5)"],
    "numpy.empty": ["n", "(n, 5)"], "numpy.full": ["(n,), 2."], "numpy.linspace": ["0, 1, n"],
    "numpy.logspace": ["0, 1, n"], "numpy.diag_indices": ["n"], "numpy.indices": ["(n,)", "(n, 5)"],
    "nn.one_hot": ["zeros, n"], "random.split": ["key, n"], "random.normal": ["key, n"],
    "random.choice": ["key, n", "key, n, (2,)"], "random.permutation": ["key, n"],
    "numpy.broadcast_to": ["0, n"], "numpy.isin": ["zeros, n"],
}  # fmt: skip

A_LIST = "the size n is not known here"
REFUSED = {
    **{f"numpy.{name}": A_LIST for name in (
        "column_stack", "concat", "concatenate", "dstack", "hstack", "lexsort", "stack", "vstack",
        "select", "fromiter", "histogramdd", "poly")},
    "lax.stack": A_LIST, "lax.unstack": A_LIST, "lax.concatenate": A_LIST,
    "numpy.unstack": "has no fixed size", "numpy.roll": "has no fixed size",
    "numpy.delete": "has no fixed size", "numpy.insert": "has no fixed size",
    "numpy.tril_indices_from": "how many places there are", "numpy.polydiv": "n - 2 < 1|n < 1",
    "numpy.triu_indices_from": "how many places there are",
    "numpy.array_equiv": "is n == [34]", "lax.index_in_dim": "index [12] of an axis of size n",
    "numpy.fill_diagonal": "with wrap", "numpy.unwrap": "is .* == 4",
    "numpy.array_split": "is mod", "numpy.gradient": "is n == 4",
    "lax.DotDimensionNumbers": A_LIST, "numpy.trapezoid": "is .* == 4",
    "numpy.squeeze": "whether axis [01] is one depends",
}  # fmt: skip
"""Requests that cannot be answered, with words of the error."""


def functions(module):
    for name in sorted(dir(module)):
        f = getattr(module, name)
        if not name.startswith("_") and callable(f) and not isinstance(f, type):
            yield name, f


def calls(surface, name):
    """(the way, a function of arrays, their shapes and dtypes)"""
    f = getattr(SURFACES[surface], name)
    for way, (call, given) in WAYS.items():
        yield way, lambda *xs, call=call: call(f, *xs), given
    for way in TAKE_SHAPES.get(f"{surface}.{name}", ()):
        yield way, lambda x, way=way: OF_SHAPES[way](f, x.shape[0]), [(V, F)]


def types(given, n):
    return [plait.ShapeDtypeStruct(tuple(n if d == "n" else d for d in s), k) for s, k in given]


def shapes_at(f, given, n):
    """The shapes of the results for arrays of n; None if it does not take them."""
    try:
        return [a.shape for a in plait.make_program(f)(*types(given, n)).out_avals]
    except Exception:  # whatever it is that it does not take
        return None


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("surface", "name"), [(s, name) for s, module in SURFACES.items() for name, _ in
                          functions(module)])  # fmt: skip
def test_traced_for_all_sizes(surface, name):
    full = f"{surface}.{name}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for way, f, given in calls(surface, name):
            at_five = shapes_at(f, given, 5)
            if at_five is None:
                continue
            try:
                found = plait.make_program(f)(*types(given, N)).out_avals
            except PlaitError as e:
                assert full in REFUSED, f"{full} with {way}: {e}"
                assert re.search(REFUSED[full], e.what), f"{full} with {way}: {e}"
                assert e.fix
                continue
            for n in (5, 6, 7):
                wanted = shapes_at(f, given, n)
                got = [tuple(d if isinstance(d, int) else d.substitute({"n": n}) for d in a.shape)
                       for a in found]  # fmt: skip
                assert wanted is None or got == wanted, f"{full} with {way}, n = {n}"
            for a in found:
                assert all(isinstance(d, int) or d >= 0 for d in a.shape), f"{full}: {a!r}"


def test_enough_is_tried():
    """Many functions are called in some way; a list that shrinks would prove nothing."""
    tried = sum(
        any(shapes_at(f, given, 5) is not None for _, f, given in calls(s, name))
        for s in ("numpy", "random", "nn") for name, _ in functions(SURFACES[s])
    )  # fmt: skip
    assert tried > 370


@pytest.mark.parametrize(("f", "words", "fix"), [
    (lambda x: x[1], r"index 1 of an axis of size n: is n > 1\?", r'x.at\[1\].get\(mode="fill"\)'),
    (lambda x: x[x.shape[0] + 1], "index n . 1 is out of range", "use an index"),
    (lambda x: x.at[2].set(1.0), "index 2 of an axis of size n", 'mode="drop"'),
    (lambda x: lax.index_in_dim(x, -3), "index -3 of an axis of size n", "mode="),
    (lambda x: pnp.tril_indices(x.shape[0]), "the size n is known by name", "plait.numpy.tri"),
    (lambda x: pnp.pad(x, 1, mode="reflect", reflect_type="odd"), "axis 0 of f32.n.", "even"),
    (lambda x: random.choice(KEY, x, (2,), replace=False), r"is 2 > n\?|is n < 2\?", "Scope"),
    (lambda x: pnp.split(x, 2), r"mod\(n, 2\) == 0", "Scope"),
], ids=lambda f: None)  # fmt: skip
def test_what_is_refused_speaks_of_the_size(f, words, fix):
    with pytest.raises(PlaitError) as e:
        plait.make_program(f)(*types([(V, F)], N))
    assert re.search(words, e.value.what), e.value.what
    assert re.search(fix, e.value.fix), e.value.fix


@pytest.mark.parametrize("i", [0, -1, 2, -3])
@pytest.mark.parametrize("mode", ["fill", "clip", "drop"])
def test_a_mode_answers_for_every_position(i, mode):
    x = types([(M, F)], N)[0]
    read = plait.make_program(lambda x: x.at[i].get(mode=mode))(x)
    write = plait.make_program(lambda x: x.at[i].set(1.0, mode=mode))(x)
    assert read.out_avals[0].shape == (4,) and write.out_avals[0].shape == (N, 4)
