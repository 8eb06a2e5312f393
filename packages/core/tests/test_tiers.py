"""How long the compiler may take: tiers give the same results up to rounding, and count alike.

Invariant: no test measures time; that the full tier has come is seen by counting compilations.
"""

import threading
import warnings

import ml_dtypes
import numpy as np
import pytest

import plait
from plait import events, lax
from plait._base import source
from plait._core.primitive import registered
from plait._xla import executables, tiers
from plait.errors import ArgumentError
from plait.events import counting

pnp = plait.numpy
X = np.random.RandomState(0).rand(6, 6).astype(np.float32)

AFFINE = {
    "scaled": lambda x: x * 1.7 + 0.3,
    "bent": lambda x: x / 3 + pnp.maximum(x, 0),
    "turned": lambda x: (x * 1.3).swapaxes(-1, -2) + 0.7 * x[:1, :1],
    "mean": lambda x: x.mean(-1, keepdims=True) * x + x,
}


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", AFFINE)
@pytest.mark.parametrize("shape", [(3, 40), (64, 64), (5, 17)])
@pytest.mark.parametrize("axis", [0, 1])
def test_places_of_extremes_of_what_is_computed_twice(name, shape, axis):
    """A product and a sum may be rounded once in one loop and twice in another: what is found must
    not hang on equality of both."""
    x = np.random.RandomState(0).randn(*shape).astype(np.float32)
    y = np.asarray(AFFINE[name](pnp.asarray(x)))
    for find, want in ((pnp.argmax, y.argmax(axis)), (pnp.argmin, y.argmin(axis))):
        f = plait.jit(lambda x, find=find: find(AFFINE[name](x), axis), tier="fast")
        np.testing.assert_array_equal(f(x), want)


PROGRAMS = {
    "elementwise": (lambda x: pnp.sin(x) * x + 1, lambda x: np.sin(x) * x + 1),
    "matmul": (lambda x: x @ x.T, lambda x: x @ x.T),
    "reduction": (lambda x: x.sum(0) - x.max(1), lambda x: x.sum(0) - x.max(1)),
    "sort": (lambda x: pnp.sort(x, axis=0), lambda x: np.sort(x, axis=0)),
    "solve": (lambda x: pnp.linalg.solve(x, x[0]), lambda x: np.linalg.solve(x, x[0])),
    "fft": (lambda x: pnp.fft.fft(x).imag, lambda x: np.fft.fft(x).imag),
    "scan": (
        lambda x: lax.scan(lambda c, y: (c + y, c * y), pnp.zeros(6), x)[0],
        lambda x: x.sum(0),
    ),
    "cond": (
        lambda x: lax.cond(x[0, 0] > 0, lambda y: y * 2, lambda y: y - 1, x),
        lambda x: np.where(x[0, 0] > 0, x * 2, x - 1),
    ),
    "callback": (
        lambda x: plait.pure_callback(np.cos, plait.ShapeDtypeStruct((6, 6), np.float32), x) + 1,
        lambda x: np.cos(x) + 1,
    ),
}


@pytest.fixture(autouse=True)
def alone():
    """No executable of another test is there, and none is being compiled afterwards."""
    tiers.wait()
    plait.clear_caches()
    yield
    tiers.wait()


def fresh(f):
    """The same function, which nobody has jitted yet."""
    return lambda *xs: f(*xs)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("tier", ["full", "fast", "both"])
def test_results_of_every_tier(name, tier):
    ours, theirs = PROGRAMS[name]
    f, x = plait.jit(fresh(ours), tier=tier), pnp.asarray(X)
    for _ in range(3):
        np.testing.assert_allclose(f(x), theirs(X), rtol=2e-4, atol=1e-5)
    tiers.wait()
    for _ in range(2):
        np.testing.assert_allclose(f(x), theirs(X), rtol=2e-4, atol=1e-5)


def test_tiers_compile_other_code():
    """The fast tier is compiled with other flags; each is compiled once."""
    seen = []
    for tier in ("full", "fast", "full", "fast", None):
        with counting() as n:
            plait.jit(lambda x: x * 5 + 1, tier=tier)(pnp.asarray(X))
        seen.append(n["compile"])
    assert seen == [1, 1, 0, 0, 0]


def _flags(tier, flags=()):
    asked = executables._compile_options((0,), tiers.Options(flags, tier))
    return {str(name): value for name, value in asked.env_option_overrides}


def test_flags_of_the_fast_tier():
    assert _flags("full") == {"xla_allow_excess_precision": False}
    assert _flags("fast")["xla_backend_optimization_level"] == 0
    mine = (("xla_backend_optimization_level", 2),)  # what a user asks for is so in every tier
    assert _flags("fast", mine)["xla_backend_optimization_level"] == 2
    loose = (("xla_allow_excess_precision", True),)
    assert _flags("full", loose) == {"xla_allow_excess_precision": True}


def test_a_flag_that_the_release_lacks_is_left_out(monkeypatch):
    """Newer releases of jaxlib have no second kind of emitters."""
    from plait._base import jaxlib_api

    flags = {"xla_backend_optimization_level": 0, "xla_no_flag_of_this_release": False}
    monkeypatch.setattr(jaxlib_api, "_FAST", flags)
    monkeypatch.setattr(jaxlib_api, "_lacking", set())
    for k in (1.5, 2.5):
        with counting() as n:
            y = plait.jit(lambda x, k=k: x * k, tier="fast")(pnp.asarray(X))
        np.testing.assert_array_equal(y, X * np.float32(k))
        assert n["compile"] == 1
    assert list(jaxlib_api.fast_flags("cpu")) == ["xla_backend_optimization_level"]


def test_threads_find_out_at_once_that_a_flag_is_lacking(monkeypatch):
    """Each was given it before any of them knew."""
    from plait._base import jaxlib_api

    flags = {"xla_backend_optimization_level": 0, "xla_no_flag_of_this_release": False}
    monkeypatch.setattr(jaxlib_api, "_FAST", flags)
    monkeypatch.setattr(jaxlib_api, "_lacking", set())
    together, real, met = threading.Barrier(4), jaxlib_api.load, threading.local()

    def load(*args):
        if not hasattr(met, "others"):
            met.others = together.wait(60)
        return real(*args)

    monkeypatch.setattr(jaxlib_api, "load", load)
    found = {}

    def work(i):
        found[i] = np.asarray(plait.jit(lambda x: x * (i + 0.5), tier="fast")(pnp.asarray(X)))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    for i in range(4):
        np.testing.assert_array_equal(found[i], X * np.float32(i + 0.5))


# ---- first fast, then full -------------------------------------------------------------------

CALLS = {
    "one array": (lambda x: x * 3, lambda a: (pnp.asarray(a),), {}),
    "several arrays": (lambda x, y: x * 3 + 0 * y, lambda a: (pnp.asarray(a), pnp.asarray(a)), {}),
    "numpy": (lambda x: x * 3, lambda a: (a,), {}),
    "numpy and array": (lambda x, y: x * 3 + 0 * y, lambda a: (a, pnp.asarray(a)), {}),
    "a tree": (lambda t: t["x"] * 3 + 0 * t["y"][0], lambda a: ({"x": a, "y": [a]},), {}),
    "static": (lambda x, n: x * n, lambda a: (pnp.asarray(a), 3), {"static_argnums": 1}),
    "static float": (lambda x, n: x * n, lambda a: (pnp.asarray(a), 3.0), {"static_argnums": 1}),
    "donated": (lambda x: x * 3, lambda a: (pnp.asarray(a),), {"donate_argnums": 0}),
    "a number": (lambda x: x * 3, lambda a: (2.0,), {}),
}


@pytest.mark.parametrize("name", CALLS)
def test_both_swaps_the_full_tier_in(name, monkeypatch):
    """Calls of each form run the fast executable until the full one is there, and then that."""
    f, arguments, options = CALLS[name]
    gate = threading.Event()
    real, ran = executables._compiled, []

    def compiled(module, ids, asked):
        if asked.tier == "full":
            assert gate.wait(60)
        return real(module, ids, asked)

    def bound(program, module, loaded, *rest):
        made = usual(program, module, loaded, *rest)

        def run(*xs, **kw):
            ran.append(loaded.executable)
            return made.run(*xs, **kw)

        return made._replace(run=run)

    usual = executables.bound
    monkeypatch.setattr(executables, "_compiled", compiled)
    monkeypatch.setattr(executables, "bound", bound)
    g = plait.jit(fresh(f) if not options else f, tier="both", **options)
    a = np.float32(2) * X
    want = np.float32(6) if name == "a number" else a * 3
    with counting() as n:
        for _ in range(4):
            np.testing.assert_allclose(g(*arguments(a)), want, rtol=1e-6)
        assert n["compile"] == 1 and len(set(map(id, ran))) == 1
        fast = ran[0]
        gate.set()
        tiers.wait()
        assert n["compile"] == 2
        ran.clear()
        for _ in range(4):
            np.testing.assert_allclose(g(*arguments(a)), want, rtol=1e-6)
        assert n["compile"] == 2 and n["trace"] == 1
    assert len(ran) == 4 and len(set(map(id, ran))) == 1 and ran[0] is not fast


def test_numpy_arguments_are_hosted_by_the_runtime_in_the_end():
    """Until the full tier is there jaxlib may not remember the fast one."""
    from plait._base import jaxlib_api

    f, made = plait.jit(lambda x: x * 7, tier="both"), []
    usual = jaxlib_api.hosted_entry
    try:
        jaxlib_api.hosted_entry = lambda *xs: made.append(xs[0]) or usual(*xs)
        for _ in range(3):
            np.testing.assert_array_equal(f(X), X * 7)
        tiers.wait()
        for _ in range(4):
            np.testing.assert_array_equal(f(X), X * 7)
    finally:
        jaxlib_api.hosted_entry = usual
    assert len(made) == 1


@pytest.mark.full_tier
def test_the_full_tier_at_once_where_it_is_there():
    f = lambda x: x * 11 + 2  # noqa: E731
    plait.jit(fresh(f))(pnp.asarray(X))
    with counting() as n:
        plait.jit(fresh(f), tier="both")(pnp.asarray(X))
        tiers.wait()
    assert n["compile"] == 0


def test_both_takes_the_full_tier_from_disk(tmp_path):
    f = lambda x: x * 13 + 2  # noqa: E731
    with plait.config(cache_dir=tmp_path / "kept"):
        x = pnp.asarray(X)
        for compiled, loaded in ((2, 0), (0, 1)):
            plait.clear_caches()
            with counting() as n:
                plait.jit(fresh(f), tier="both")(x)
                tiers.wait()
            assert (n["compile"], n["load"]) == (compiled, loaded)
        plait.clear_caches()
        with counting() as n:  # and the fast one is kept, too
            plait.jit(fresh(f), tier="fast")(x)
        assert (n["compile"], n["load"]) == (0, 1)


def test_equal_traces_share_both():
    """A function that is jitted in many places is compiled twice in all, and swapped in each."""
    f = lambda x: x - 21  # noqa: E731
    x = pnp.asarray(X)
    with counting() as n:
        jitted = [plait.jit(f, tier="both", inline=i) for i in (False, True, False)]
        for g in jitted:
            np.testing.assert_array_equal(g(x), X - 21)
        tiers.wait()
        for g in jitted:
            np.testing.assert_array_equal(g(x), X - 21)
    assert n["compile"] == 2


def test_swap_forgets_those_who_come_late():
    """A table that was filled after the other tier came is emptied all the same."""
    swap, forgotten = tiers.Swap(), []
    early, late = (lambda: forgotten.append("early")), (lambda: forgotten.append("late"))
    swap.tell(early)
    assert not forgotten
    swap.finish()
    swap.tell(late)
    assert forgotten == ["early", "late"]
    gone = tiers.Swap()
    gone.tell(lambda: forgotten.append("dead"))  # nobody holds it
    gone.finish()
    assert forgotten == ["early", "late"]


def test_threads_call_while_tiers_are_swapped():
    """Many threads, many functions: right results, and everybody ends with the full tier."""
    fs = [plait.jit(lambda x, k=k: x * k + 1, tier="both") for k in range(6)]
    x, wrong = pnp.asarray(X), []

    def work():
        for _ in range(30):
            for k, f in enumerate(fs):
                if not np.allclose(f(x), X * np.float32(k) + 1):
                    wrong.append(k)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    tiers.wait()
    with counting() as n:
        work()
    assert not wrong and not n["compile"]


def test_an_error_of_the_thread_is_a_warning_once(monkeypatch):
    real = executables._compiled
    told = []

    def compiled(module, ids, asked):
        if asked.tier == "full":
            raise MemoryError("no room for the full tier")
        return real(module, ids, asked)

    monkeypatch.setattr(executables, "_compiled", compiled)
    monkeypatch.setattr(source, "_told", set())
    monkeypatch.setattr(
        warnings, "warn_explicit", lambda text, kind, *at, **kw: told.append((kind, text))
    )
    for k in (31.0, 32.0):
        f = plait.jit(lambda x, k=k: x * k, tier="both")
        for _ in range(2):
            np.testing.assert_array_equal(f(pnp.asarray(X)), X * np.float32(k))
        tiers.wait()
    assert told == [
        (
            RuntimeWarning,
            "the full tier could not be compiled, and the fast one stays: "
            "no room for the full tier",
        )
    ]


EXITS = {
    "busy": "",
    "an error": "raise ValueError('mine')",
    "exit": "sys.exit(0)",
    "in a thread": "threading.Thread(target=lambda: jobs(range(9, 12))).start()",
    "at exit": "import atexit; atexit.register(lambda: jobs(range(9, 10)))",
    "waiting": "from plait._xla import tiers; tiers.wait()",
}


@pytest.mark.sampled(10)
@pytest.mark.parametrize("end", EXITS)
def test_a_process_ends_while_the_thread_compiles(end, process):
    """It neither hangs nor crashes, and says nothing of the thread."""
    program = f"""
        import sys, threading
        import plait
        import plait.numpy as pnp

        def jobs(ks):
            for k in ks:
                def f(x):
                    for _ in range(12):
                        x = pnp.tanh(x @ x) * k + pnp.sin(x)
                    return x
                plait.jit(f, tier="both")(pnp.ones((8, 8))).sum()

        jobs(range(4))
        {EXITS[end]}
    """
    done = process(program, status=1 if end == "an error" else 0)
    if end == "an error":
        assert done.stderr.rstrip().endswith("ValueError: mine")
    else:
        assert done.stderr == ""


# ---- saying it -------------------------------------------------------------------------------


@pytest.mark.full_tier
def test_the_setting(process):
    """It is the tier of what does not say its own; changing it compiles anew."""
    f, x = plait.jit(lambda x: x * 17), pnp.asarray(X)
    named = plait.jit(lambda x: x * 18, tier="full")
    with counting() as n:
        f(x), named(x)
        assert n["compile"] == 2
        with plait.config(tier="fast"):
            f(x), f(x), named(x)
            assert n["compile"] == 3
        f(x), named(x)
        assert n["compile"] == 3
        with plait.config(tier="both"):
            f(x), named(x)
        tiers.wait()
        assert n["compile"] == 3  # both are there
    done = process("import plait; print(plait.config.tier)", PLAIT_TIER="fast")
    assert done.stdout == "fast\n"


def test_compiling_ahead():
    lowered = plait.jit(lambda x: x * 19 - 1).lower(pnp.asarray(X))
    for tier in ("fast", "full", "both", None):
        compiled = lowered.compile(tier=tier)
        np.testing.assert_allclose(compiled(X), X * 19 - 1, rtol=1e-6)
    plait.clear_caches()
    compiled = lowered.compile(tier="both")
    fast = compiled.runtime_executable()
    np.testing.assert_allclose(compiled(X), X * 19 - 1, rtol=1e-6)
    tiers.wait()
    assert compiled.runtime_executable() is not fast
    np.testing.assert_allclose(compiled(X), X * 19 - 1, rtol=1e-6)
    plait.clear_caches()
    of_jit = plait.jit(lambda x: x * 19 - 1, tier="fast").lower(pnp.asarray(X))
    with counting() as n:
        of_jit.compile()
        lowered.compile(tier="fast")
    assert n["compile"] == 1


@pytest.mark.parametrize("bad", ["slow", "", 1, True, ["fast"]])
def test_other_tiers_are_refused(bad):
    for asked in (
        lambda: plait.jit(lambda x: x, tier=bad),
        lambda: plait.jit(lambda x: x).lower(1.0).compile(tier=bad),
    ):
        with pytest.raises(ArgumentError, match="no tier") as e:
            asked()
        assert '"both"' in e.value.fix and "test_tiers" in e.value.where
    with pytest.raises(plait.PlaitError, match="'tier' cannot be") as e:
        plait.config.tier = bad
    assert e.value.fix == "give full or fast or both"


def test_a_bad_flag_is_refused_in_every_tier():
    for tier in ("full", "fast", "both"):
        f = plait.jit(lambda x: x, tier=tier, compiler_options={"xla_no_such_flag": 1})
        with pytest.raises(ArgumentError, match="compiler_options"):
            f(1.0)


# ---- operations outside of jit ---------------------------------------------------------------

SMALL = np.concatenate([np.random.RandomState(1).randn(56), [0.0, -0.0, np.inf, -np.inf, np.nan]])
PAIRS = {
    "add": (lambda x, y: x + y, np.add),
    "sub": (lambda x, y: x - y, np.subtract),
    "mul": (lambda x, y: x * y, np.multiply),
    "div": (lambda x, y: x / y, np.divide),
    "maximum": (pnp.maximum, np.maximum),
    "less": (lambda x, y: x < y, np.less),
    "neg": (lambda x, y: -x, lambda x, y: -x),
    "abs": (lambda x, y: abs(x), lambda x, y: abs(x)),
    "sqrt": (lambda x, y: pnp.sqrt(y), lambda x, y: np.sqrt(y)),
    "floor": (lambda x, y: pnp.floor(x), lambda x, y: np.floor(x)),
    "rint": (lambda x, y: pnp.rint(x), lambda x, y: np.rint(x)),
    "sign": (lambda x, y: pnp.sign(x), lambda x, y: np.sign(x)),
    "a number": (lambda x, y: x * 3.0, lambda x, y: x * x.dtype.type(3)),
    "where": (lambda x, y: pnp.where(x < y, x, y), lambda x, y: np.where(x < y, x, y)),
    "get": (lambda x, y: x[3:9:2], lambda x, y: x[3:9:2]),
    "set": (lambda x, y: x.at[3].set(y[0])[2:5], lambda x, y: np.array([x[2], y[0], x[4]])),
    "take": (lambda x, y: x[pnp.asarray([4, 2])], lambda x, y: x[[4, 2]]),
    "concatenate": (lambda x, y: pnp.concatenate([x, y]), lambda x, y: np.concatenate([x, y])),
    "reshape": (lambda x, y: pnp.tile(x, (2, 1)).T, lambda x, y: np.tile(x, (2, 1)).T),
    "convert": (lambda x, y: y.astype("float16"), lambda x, y: y.astype("float16")),
}


@pytest.mark.sampled(16)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32"])
@pytest.mark.parametrize("name", PAIRS)
def test_single_operations_have_the_bits_of_numpy(name, dtype):
    """Also those that are compiled fast, and the same as in the full tier."""
    x = SMALL[:-5] * 5 if dtype == "int32" else SMALL
    x = x.astype(dtype)
    y = np.abs(np.roll(x, 7)) + np.asarray(1, dtype)
    f, g = PAIRS[name]
    with np.errstate(all="ignore"):
        want = np.asarray(g(x, y))
    if name in ("div", "sqrt", "floor", "rint") and dtype == "int32":
        want = want.astype("float32")
    a, b = pnp.asarray(x), pnp.asarray(y)
    got = np.asarray(f(a, b))
    inside = np.asarray(plait.jit(lambda x, y: f(x, y), tier="full")(a, b))
    assert got.dtype == inside.dtype
    np.testing.assert_array_equal(got, inside)
    np.testing.assert_array_equal(got, want.astype(got.dtype))


def test_which_operations_are_compiled_fast():
    def tier(f, *shapes, dtype="float32"):
        types = [plait.ShapeDtypeStruct(s, dtype) for s in shapes]
        return tiers.of_operation(plait.make_program(f)(*types)).tier

    names = tiers._MOVED | tiers._ROUNDED
    assert not [n for n in names if registered(f"core.{n}") is None]
    assert tier(lax.add, (4,), (4,)) == tier(lambda x: x.reshape(2, 2), (4,)) == "fast"
    assert tier(lambda x: x + 1.0, (64, 64)) == "fast"
    assert tier(lambda x: x[1:], (4097,)) is None  # large
    assert tier(lambda x: pnp.broadcast_to(x, (4097,)), ()) is None
    assert tier(lambda x: x[pnp.asarray([-1, 2])], (4,)) == "fast"  # numbers of rows are exact
    twice = pnp.asarray([0, 0])
    for f in (lax.sin, lax.tanh, pnp.sum, pnp.sort, pnp.cumsum, lambda x: x.at[twice].add(x[1])):
        assert tier(f, (4,)) is None
    assert tier(lambda x: x * x + x, (4,)) is None  # may be one operation of the processor
    assert tier(lax.mul, (4,), (4,), dtype="complex64") is None
    with plait.config(tier="fast"):
        assert tiers.of_operation(plait.make_program(lax.sin)(1.0)).resolved().tier == "fast"


def test_clamp_of_booleans_by_both_tiers():
    """The fast one has no such operation."""
    cases = [np.array(v) for v in np.ndindex(2, 2, 2)]
    low, x, high = (np.array(v, bool) for v in zip(*cases))
    for tier in ("full", "fast"):
        got = plait.jit(lambda *v: plait.lax.clamp(*v), tier=tier)(low, x, high)
        np.testing.assert_array_equal(got, np.clip(x, low, high))


@pytest.mark.parametrize("tier", ["full", "fast"])
@pytest.mark.parametrize("dtype", ["float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e4m3b11fnuz"])
def test_what_is_rounded_to_zero_where_there_is_no_negative_zero(dtype, tier):
    """The bits of a negative zero are nan in these types; small arrays are computed by the fast
    tier whatever the setting is."""
    t = np.dtype(getattr(ml_dtypes, dtype))
    least = float(ml_dtypes.finfo(t).smallest_subnormal)
    x = np.outer([-1, 1], least * np.array([0, 0.25, 0.5, 0.75, 1, 2])).ravel().astype("float32")
    a, b = (v.ravel() for v in np.meshgrid(x.astype(t), np.array([-1, -0.5, 0, 0.25], t)))
    with plait.config(tier=tier):
        for way in (lambda f: f, plait.jit):
            for source in ("float32", "float64", "bfloat16"):
                got = way(lambda v: v.astype(dtype))(pnp.asarray(x.astype(source)))
                np.testing.assert_array_equal(np.asarray(got), x.astype(source).astype(t))
            product = way(lambda a, b: a * b)(pnp.asarray(a), pnp.asarray(b))
            np.testing.assert_array_equal(np.asarray(product), a * b)


def test_the_fast_tier_rolls_equal_layers():
    """The compiler is given one layer, not twelve; the full tier is given all."""

    def net(n, x, ws):
        for w in ws:
            h = n.tanh(x @ w) * 2 - n.cos(x)
            h = n.sin(h) * h + n.maximum(h, x) * 3 - n.minimum(x, h * h)
            x = x + n.abs(h) / (1 + n.abs(h * x)) - n.tanh(h + 1)
        return x

    ws = [np.random.default_rng(i).normal(size=(3, 3)).astype(np.float32) for i in range(12)]
    x, seen = np.ones((2, 3), np.float32), []
    want = net(np, x, ws)

    def note(what, of):
        if what == "lower":
            seen.append(of)

    with events.listening(note):
        for tier in ("fast", "full", "both"):
            f = plait.jit(lambda x, ws: net(pnp, x, ws), tier=tier)
            for _ in range(2):
                np.testing.assert_allclose(f(x, ws), want, rtol=1e-4, atol=1e-5)
                tiers.wait()
    lengths = [len(p.eqns) for p in seen if len(p.eqns) > 3]
    assert [n < 60 for n in lengths] == [True, False, False, True]
