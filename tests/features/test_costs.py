"""What things cost, in counts that no machine changes: compilations, launches, calls of Python.

A bound is what was counted when it was written, and some more: it fails if a hot path begins to
call another function for each operation, or something is compiled that was not.

Invariant: nothing here is timed.
"""

import functools
import gc
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax
from plait._xla import executables

F32 = np.float32


@pytest.fixture(autouse=True)
def unchecked():
    """Count without `config.checks`, which the runner may set and which adds calls."""
    with plait.config(checks=False):
        yield


def calls(f):
    """How many functions of Python are called."""
    count = 0

    def on_event(frame, event, arg):
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    gc.collect()
    gc.disable()  # a collection calls functions for what it frees
    sys.setprofile(on_event)
    try:
        f()
    finally:
        sys.setprofile(before)
        gc.enable()
    return count - 1


# ---- Python calls for an operation -------------------------------------------------------------


def chain(n):
    """A function of n operations."""

    def f(x):
        for _ in range(n // 2):
            x = lax.mul(lax.sin(x), x)
        return lax.reduce_sum(x, (0,))

    return f


X = np.linspace(0.1, 0.9, 5, dtype=F32)
ROWS = np.ones((3, 5), F32)
STAGES = {
    "trace": (lambda f: plait.jit(f).trace(X), 4.5),
    "trace jvp": (lambda f: plait.jit(lambda x: plait.jvp(f, (x,), (x,))).trace(X), 21),
    "trace vmap": (lambda f: plait.jit(plait.vmap(f)).trace(ROWS), 17),
    "trace grad": (lambda f: plait.jit(plait.grad(f)).trace(X), 58),
    "lower": (lambda f: plait.jit(f).lower(X).compiler_ir(), 13.6),
    "lower grad": (lambda f: plait.jit(plait.grad(f)).lower(X).compiler_ir(), 90),
}


@pytest.mark.parametrize("stage", STAGES)
def test_python_calls_for_an_operation(stage):
    """The difference of two lengths, so that what happens once a call does not count."""
    make, most = STAGES[stage]
    make(chain(8))  # what is looked up the first time
    few, many = (calls(lambda n=n: make(chain(n))) for n in (200, 600))
    assert (many - few) / 400 <= most


D = pnp.asarray(np.ones((2, 3), F32))
KEY = plait.random.key(0)
ADDED = plait.jit(lambda x: x + 1)
SUMMED = plait.jit(lambda x, y: x + y)
DONATED = plait.jit(lambda x: x + 1, donate_argnums=0)
SHORT = {  # a call on small arrays, and how many functions of Python run
    "a jitted function": (lambda: ADDED(D), 1),
    "a donated argument": (None, 2),
    "numpy arguments": (lambda: SUMMED(ROWS, ROWS), 2),
    "a result read by numpy": (lambda: np.asarray(ADDED(D)), 3),
    "an array read again": (lambda: np.asarray(D), 2),
    "an operation": (lambda: pnp.sin(D), 2),
    "a product": (lambda: D @ D.T, 3),
    "where": (lambda: pnp.where(D > 0, D, 0.0), 7),
    "normal": (lambda: plait.random.normal(KEY, (4,)), 9),
}


@pytest.mark.parametrize("what", SHORT)
def test_python_calls_for_a_short_call(what):
    run, most = SHORT[what]
    if what == "a donated argument":  # which is gone after the call
        given = iter([pnp.asarray(ROWS) for _ in range(9)])
        run = lambda: DONATED(next(given))
    for _ in range(4):
        run()
    assert calls(run) <= most


# ---- piles -------------------------------------------------------------------------------------

LENGTHS = np.random.default_rng(0).integers(0, 100, 16)


def attention(q, k, v):
    scores = pnp.einsum("nhd,mhd->hnm", q, k) / F32(5.6)
    return pnp.einsum("hnm,mhd->nhd", plait.nn.softmax(scores, -1), v)


def layers(x, v, w):
    return (pnp.tanh(x @ v) @ w).sum(0)


def recurrent(x, w):
    return lax.scan(lambda h, r: (pnp.tanh(w @ h + r), None), pnp.zeros(8, "float32"), x)[0]


SQUARE = np.ones((8, 8), F32)
MAPPED = {  # a function of one example, what it is given (a shape: an axis more in front), ragged?
    "sum": (lambda x: x.sum(0), [(8,)], False),
    "softmax": (lambda x: plait.nn.softmax(x, 0), [(8,)], True),
    "cumsum": (lambda x: pnp.cumsum(x, 0), [(8,)], True),
    "sort": (lambda x: pnp.sort(x, 0), [()], True),
    "layers": (layers, [(8,), SQUARE, SQUARE], False),
    "recurrent": (recurrent, [(8,), SQUARE], False),
    "attention": (attention, [(4, 8)] * 3, True),
    "fused attention": (plait.nn.dot_product_attention, [(4, 8)] * 3, True),
}


def of_rows(shape):
    return plait.Pile.from_list([np.ones((n, *shape), F32) for n in LENGTHS])


def arguments(name, piles):
    make = of_rows if piles else lambda shape: np.ones((16, 100, *shape), F32)
    return [make(g) if isinstance(g, tuple) else g for g in MAPPED[name][1]]


def mapped_over(name, k, piles, backwards):
    """Another function at each number k."""
    f, given, is_ragged = MAPPED[name]
    if name == "fused attention" and not piles:
        # Without a bias it is one operation for an array, but is written out for a pile.
        f = lambda q, k, v: plait.nn.dot_product_attention(q, k, v, np.zeros((1, 1, 1), F32))
    axis = plait.pile_axis if piles else 0
    axes = tuple([axis if isinstance(g, tuple) else None for g in given])
    out = plait.pile_axis if piles and is_ragged else 0
    run = plait.vmap(lambda *xs: f(*xs) * F32(k), axes, out)
    if not backwards:
        return run
    total = lambda y: (y.data if isinstance(y, plait.Pile) else y).sum()
    return plait.grad(lambda *xs: total(run(*xs)))


@pytest.mark.parametrize("backwards", [False, True], ids=["forward", "backward"])
@pytest.mark.parametrize("name", MAPPED)
def test_python_calls_for_a_pile(name, backwards):
    """Tracing a program over a pile, and lowering it, costs little more than over an array."""

    def counted(piles, then):
        numbers, args = iter(range(2, 9)), arguments(name, piles)

        def run():
            then(plait.jit(mapped_over(name, next(numbers), piles, backwards)), args)

        for _ in range(3):  # what is looked up and staged the first time
            run()
        return calls(run)

    for then, most in (
        (lambda f, args: f.trace(*args), 3.9),
        (lambda f, args: f.lower(*args).as_text(), 5),
    ):
        assert counted(True, then) <= most * counted(False, then)


@pytest.mark.parametrize("ways", ["from_list", "from_padded"])
def test_python_calls_for_an_element_of_a_pile(ways):
    """Nothing goes to the device and back for each element."""

    def made(n):
        xs = [np.ones((k % 7, 4), F32) for k in range(n)]
        if ways == "from_list":
            return lambda: plait.Pile.from_list(xs)
        padded = np.ones((n, 7, 4), F32)
        return lambda: plait.Pile.from_padded(padded, np.array([len(x) for x in xs]))

    few, many = made(20), made(120)
    for run in (few, many):
        run()
    assert (calls(many) - calls(few)) / 100 <= 1


@pytest.mark.parametrize("count", [8, 32])
@pytest.mark.parametrize("dtype", [F32, np.float64])
def test_python_calls_for_a_list_of_arrays(count, dtype):
    """A pile of numpy arrays of other lengths each time, and a jitted function of it."""
    r = np.random.default_rng(1)
    lists = [[np.ones((n, 4), dtype) for n in r.integers(30, 60, count)] for _ in range(60)]
    f = plait.jit(lambda p: plait.vmap(lambda x: x.sum(0), plait.pile_axis)(p))
    make = lambda: [plait.Pile.from_list(xs) for xs in lists]
    for _ in range(2):
        for p in make():
            f(p)
    assert calls(make) / 60 <= 28
    piles = make()
    assert calls(lambda: [f(p) for p in piles]) / 60 <= 27


def batches(capacity):
    """60 batches of other lengths each, made anew at each call."""
    r = np.random.default_rng(3)
    lengths = [np.minimum(r.pareto(1.2, 16) * 10 + 1, 300).astype(np.int32) for _ in range(60)]
    xs = [np.ones((int(n.sum()), 8), F32) for n in lengths]
    return lambda: [plait.Pile(x, n, capacity=capacity) for x, n in zip(xs, lengths)]


CALLS_FOR_A_BATCH = {  # a capacity; calls to make a pile; calls of a jitted function of it
    "a capacity": ((5000, 300), 36, 8),
    "capacities in turn": (None, 32, 34),
}


@pytest.mark.parametrize("name", CALLS_FOR_A_BATCH)
def test_python_calls_for_a_batch(name):
    """A jitted function finds the program for a pile without comparing structures part by part."""
    capacity, to_make, to_call = CALLS_FOR_A_BATCH[name]
    make = batches(capacity)
    f = plait.jit(lambda p: plait.vmap(lambda x: x.sum(0), plait.pile_axis)(p))
    for _ in range(2):  # the second time, all programs are there
        for p in make():
            f(p)
    assert calls(make) / 60 <= to_make
    piles = make()
    assert calls(lambda: [f(p) for p in piles]) / 60 <= to_call


def test_python_calls_for_a_batch_beside_donated_weights():
    """A step of training donates its weights, and takes the same short path."""
    make = batches((5000, 300))
    loss = lambda w, p: plait.vmap(lambda x: (w["a"] * x).sum() * w["b"], plait.pile_axis)(p).sum()
    step = plait.jit(
        lambda w, p: plait.tree.map(lambda v, g: v - g, w, plait.grad(loss)(w, p)),
        donate_argnums=0,
    )
    w = {"a": plait.numpy.ones(8, F32), "b": plait.numpy.ones((), F32)}
    for p in make():
        w = step(w, p)
    piles = make()

    def run():
        nonlocal w
        for p in piles:
            before, w = w, step(w, p)
            assert not any(hasattr(x, "_buf") for x in before.values())

    assert calls(run) / 60 <= 45


# ---- launches ----------------------------------------------------------------------------------


def mlp(weights, x):
    for w in weights:
        x = pnp.tanh(x @ w)
    return pnp.mean(x**2)


WEIGHTS = [pnp.asarray(np.full((5, 5), 0.1 * k, F32)) for k in range(1, 4)]
BATCH = pnp.asarray(np.ones((4, 5), F32))
PULL = plait.vjp(mlp, WEIGHTS, BATCH)[1]
PUSH = plait.linearize(mlp, WEIGHTS, BATCH)[1]
ONE = pnp.asarray(F32(1))
ALONE = pnp.asarray(np.ones((19, 3), F32))  # no other test has arrays of this shape
OUTSIDE_OF_JIT = {
    "an operation": lambda: pnp.sin(ALONE),
    "a composed function": lambda: pnp.std(BATCH, axis=0),
    "grad": lambda: plait.grad(mlp)(WEIGHTS, BATCH),
    "value_and_grad": lambda: plait.value_and_grad(mlp)(WEIGHTS, BATCH),
    "grad of grad": lambda: plait.grad(lambda x: plait.grad(lambda y: mlp(WEIGHTS, y))(x).sum())(
        BATCH
    ),
    "jvp": lambda: plait.jvp(lambda x: mlp(WEIGHTS, x), (BATCH,), (BATCH,)),
    "vmap": lambda: plait.vmap(lambda x: mlp(WEIGHTS, x))(BATCH),
    "vmap of grad": lambda: plait.vmap(plait.grad(lambda x: mlp(WEIGHTS, x)))(BATCH),
    "linearize": lambda: plait.linearize(mlp, WEIGHTS, BATCH)[0],
    "vjp": lambda: plait.vjp(mlp, WEIGHTS, BATCH)[0],
    "a pullback": lambda: PULL(ONE),
    "a pushforward": lambda: PUSH(WEIGHTS, BATCH),
}


@pytest.fixture
def forgotten():
    """Nothing is compiled, and nothing was seen."""
    plait.clear_caches()


@pytest.fixture
def launches(forgotten, monkeypatch):
    """The names of the programs that ran, so far."""
    names, bound = [], executables.bound

    def counted(program, *rest):
        made = bound(program, *rest)

        def run(buffers):
            names.append(program.name)
            return made.run(buffers)

        return made._replace(run=run)

    monkeypatch.setattr(executables, "bound", counted)
    yield names
    plait.clear_caches()


@pytest.mark.sampled(10)
@pytest.mark.parametrize("what", OUTSIDE_OF_JIT)
def test_one_launch_outside_of_jit(what, launches):
    one_launch(what, launches)


def one_launch(what, launches):
    run = OUTSIDE_OF_JIT[what]
    for _ in range(10):  # it is one program when it came often
        run()
    assert launches
    del launches[:]
    with plait.events.counting() as n:
        run()
    assert len(launches) == 1
    assert not any(n[kind] for kind in ("trace", "lower", "compile"))


class Pair:
    """A class whose values are mapped in their own way."""

    def __init__(self, both):
        self.both = both


@pytest.mark.parametrize("what", ["vmap", "vmap of grad"])
def test_classes_that_are_registered_do_not_divide_other_maps(what, launches):
    """plait.sparse registers two, for instance."""
    to = lambda cont, index, x, axis: Pair(cont(x.both, axis))  # noqa: E731
    back = lambda cont, size, x, axis: Pair(cont(size, x.both, axis))  # noqa: E731
    plait.register_vmappable(Pair, int, int, to, back)
    try:
        one_launch(what, launches)
        late = []
        doubled = lambda x: Pair(x * 2) if late else x * 2  # noqa: E731
        for _ in range(12):
            plait.vmap(doubled)(ALONE)
        late.append(True)
        for _ in range(3):
            np.testing.assert_array_equal(plait.vmap(doubled)(ALONE).both, np.full((19, 3), 2.0))
            found = plait.vmap(lambda p: p.both.sum(), axis_size=19)(Pair(ALONE))
            np.testing.assert_array_equal(found, np.full(19, 3.0))
    finally:
        plait.unregister_vmappable(Pair)


@pytest.mark.parametrize("before", ["nothing", "other structures", "values of classes"])
def test_functions_that_one_decorator_made_are_recorded_alone(before, launches):
    """They have their code in common, and no more: what one did says nothing of the others."""
    wrapped = lambda f: functools.wraps(f)(lambda x: f(x))  # noqa: E731
    if before == "other structures":
        for k in range(40):
            plait.vmap(wrapped(lambda x, k=k: x * k))(ALONE)
    if before == "values of classes":
        back = lambda cont, size, x, axis: Pair(cont(size, x.both, axis))  # noqa: E731
        plait.register_vmappable(Pair, int, int, lambda *_: None, back)
    try:
        if before == "values of classes":
            plait.vmap(wrapped(Pair))(ALONE)
        last = wrapped(lambda x: pnp.tanh(x) * 2)
        for _ in range(10):
            plait.vmap(last)(ALONE)
        del launches[:]
        plait.vmap(last)(ALONE)
        assert len(launches) == 1
    finally:
        if before == "values of classes":
            plait.unregister_vmappable(Pair)


def test_a_gradient_of_a_network_is_one_compilation(forgotten):
    with plait.events.counting() as n:
        for _ in range(5):
            plait.value_and_grad(mlp)(WEIGHTS, BATCH)
    assert n["compile"] == 1


@pytest.mark.parametrize("transformed", [
    plait.grad,
    plait.vmap,
    lambda f: lambda x: plait.jvp(f, (x,), (x,)),
    lambda f: lambda x: plait.vjp(f, x),
], ids=["grad", "vmap", "jvp", "vjp"])  # fmt: skip
def test_functions_that_change_compile_their_operations_alone(forgotten, transformed):
    """Forty functions of two operations, no two alike: few programs are compiled for them."""

    def changing(x, n):
        for i in range(n):
            x = pnp.sin(x) if (n >> (i % 5)) % 2 else x * x
        return pnp.sum(x)

    x = pnp.asarray(np.ones((2, 3), F32))
    for n in range(4, 8):
        transformed(lambda x, n=n: changing(x, n))(x)
    with plait.events.counting() as counted:
        for n in range(8, 44):
            transformed(lambda x, n=n: changing(x, n))(x)
    assert counted["compile"] <= 16


# ---- processes ---------------------------------------------------------------------------------

NOTEBOOK = """
    import numpy as np
    import plait
    import plait.numpy as pnp

    x = pnp.asarray(np.linspace(0.0, 1.0, 12, dtype=np.float32).reshape(3, 4))
    with plait.events.counting() as n:
        for k in range(5):
            plait.jit(lambda x: pnp.sin(x) * k + pnp.sum(x))(x)
        w = x.T @ x
        g = plait.grad(lambda w: pnp.mean(pnp.tanh(x @ w) ** 2))
        for _ in range(5):
            w = w - 0.1 * g(w)
        float(pnp.std(w))
        plait.vmap(lambda r: pnp.sort(r)[0] + 1)(x)
    print(n["compile"], n["load"])
"""


def told(script, folder):
    """The numbers that a script prints in a process of its own, which keeps executables there."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**os.environ, "PLAIT_CACHE_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    return [int(word) for word in done.stdout.split()]


def test_a_second_start_compiles_nothing(tmp_path):
    compiled, loaded = told(NOTEBOOK, tmp_path)
    assert compiled > 5
    again, found = told(NOTEBOOK, tmp_path)
    assert (again, found) == (0, compiled + loaded)


def test_modules_that_are_imported(tmp_path):
    """Of Plait, what `import plait` and a first operation of the array library load;
    and nothing for compiling, nor any other library, before something is compiled."""
    script = """
        import sys
        import plait

        names = list(sys.modules)
        heavy = ("scipy", "numpy.ma.", "jaxlib.mlir", "importlib.metadata", "concurrent.futures")
        print(sum(n.split(".")[0] == "plait" for n in names))
        print(sum(n.split(".")[0].startswith("plait_") for n in names))
        print(sum(n.startswith(heavy) for n in names))
        plait.numpy.ones(3)
        names = list(sys.modules)
        print(sum(n.split(".")[0] == "plait" for n in names))
        print(sum(n.split(".")[0].startswith("plait_") for n in names))
    """
    core, plugins, heavy, core_then, plugins_then = told(script, tmp_path)
    assert heavy == 0
    assert plugins == 0
    assert core <= 128
    assert core_then + plugins_then <= 241
