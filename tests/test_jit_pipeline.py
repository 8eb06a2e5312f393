"""A jitted function's way through the stages of its calls, and the caches on that way.

The walk is taken by a profiler, which sees every call of a function of a stage that is given the
jitted function, or an object that holds it.
"""

import functools
import gc
import sys
import types
import weakref
from pathlib import Path

import numpy as np
import pytest

import plait
from plait import lax
from plait._jit import calls

STAGES = tuple([line.split()[0] for line in calls.__doc__.splitlines() if "->" in line])
"""The stages, in the order in which the docstring of `calls` names them."""

SPINE = ("calls", "jitted")
"""The modules that lead a call through the stages, one after the other."""

FOLDER = Path(calls.__file__).parent


# ---- the walk of a function --------------------------------------------------------------------


def holds(x: object, f: object, depth: int = 5) -> bool:
    """Return whether an object is `f`, or an object of the stages that holds it."""
    if x is f or depth == 0:
        return x is f
    if isinstance(x, types.FunctionType):
        cells = [c.cell_contents for c in x.__closure__ or () if c != types.CellType()]
        parts = [getattr(x, "__wrapped__", None), *cells]
    elif isinstance(x, types.MethodType):
        parts = [x.__self__]
    elif isinstance(x, functools.partial):
        parts = [x.func, *x.args]
    elif isinstance(x, weakref.ref):
        parts = [x()]
    elif not type(x).__module__.startswith("plait._jit"):
        parts = []
    elif isinstance(x, tuple):
        parts = [*x]
    else:
        names = [n for c in type(x).__mro__ for n in getattr(c, "__slots__", ())]
        parts = [getattr(x, n, None) for n in names if not n.startswith("__")]
    return any(holds(p, f, depth - 1) for p in parts if p is not None)


def place(frame) -> str | None:
    """The stage that a frame runs in, or "spine"; None for a frame of another module."""
    path = Path(frame.f_code.co_filename)
    if path.parent != FOLDER or path.stem not in STAGES + SPINE:
        return None
    return path.stem if path.stem in STAGES else "spine"


def walk(f, action) -> list[str]:
    """The stages that `f` is passed to, in order, while `action()` runs."""
    stays = []

    def look(frame, event, _):
        here = place(frame) if event == "call" else None
        if here is None:
            return
        sys.setprofile(None)
        try:
            caller = frame.f_back
            while caller is not None and place(caller) is None:
                caller = caller.f_back
            inside = caller is not None and place(caller) == here
            if not inside and any(holds(v, f) for v in [*frame.f_locals.values()]):
                stays.append(here)
        finally:
            sys.setprofile(look)

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        action()
    finally:
        sys.setprofile(before)
    return stays


def climbs(stays: list[str]) -> int:
    """The number of steps to an earlier stage, or from a stage back to the spine."""
    ranks = [-1 if s == "spine" else STAGES.index(s) for s in stays]
    return sum(b < a for a, b in zip(ranks, ranks[1:]))


X = np.arange(4, dtype=np.float32)


def arrays(n: int) -> list:
    return [plait.numpy.asarray(X + i) for i in range(n)]


def total(tree) -> np.ndarray:
    return sum(np.asarray(x) for x in plait.tree.leaves(tree))


CALLS = {
    "one array": ({}, lambda a, b: ((a,), {})),
    "parameters": ({}, lambda a, b: (({"w": a, "b": b},), {})),
    "named": ({}, lambda a, b: ((a,), {"b": b})),
    "static": ({"static_argnums": 1}, lambda a, b: ((a, 3), {})),
    "donated": ({"donate_argnums": 0}, lambda a, b: ((a, b), {})),
    "named static": ({"static_argnames": "n"}, lambda a, b: ((a,), {"n": 3})),
    "placed": ({"in_shardings": None, "device": plait.devices()[0]}, lambda a, b: ((a, b), {})),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_function_climbs_at_most_twice(name):
    options, given = CALLS[name]

    def f(*args, **kwargs):
        return lax.add(sum(plait.tree.leaves((args, kwargs))), X)

    made = []
    way = walk(f, lambda: made.append(plait.jit(f, **options)))
    ways = [way]
    for _ in range(2):
        args, kwargs = given(*arrays(2))
        want = total((args, kwargs)) + X
        ways.append(walk(f, lambda a=args, k=kwargs: made.append(made[0](*a, **k))))
        np.testing.assert_array_equal(np.asarray(made[-1]), want)
    *first, again = ways
    assert again == ["spine"]  # a hit passes through no stage
    assert "tracing" in first[1]
    # where results are constrained, a function of `placements` calls that of the user
    most, stays = (3, 16) if name == "placed" else (2, 14)
    assert sum(map(climbs, first)) <= most and sum(map(len, first)) <= stays, first


# ---- the caches --------------------------------------------------------------------------------

OPTIONS = {
    "none": {},
    "static": {"static_argnames": "n"},
    "donated": {"donate_argnums": 0},
    "placed": {"device": plait.devices()[0]},
    "results placed": {"out_shardings": None},
    "inline": {"inline": True},
}


BY_NAME = pytest.mark.parametrize("named", [False, True], ids=["by position", "by name"])


@BY_NAME
@pytest.mark.parametrize("name", OPTIONS)
def test_a_cleared_function_is_traced_again(name, named):
    runs = []

    def f(x, y, n=None):
        runs.append(1)
        return lax.add(x, y)

    jitted = plait.jit(f, **OPTIONS[name])
    for expected in (1, 1, 2, 2):
        if expected == 2 and len(runs) == 1:
            jitted.clear_cache()
        x, y = arrays(2)
        out = jitted(x, y=y) if named else jitted(x, y)
        np.testing.assert_array_equal(np.asarray(out), 2 * X + 1)
        assert len(runs) == expected


def result_makers() -> int:
    """The number of functions that make the results of compiled calls: each has one of its own."""
    gc.collect()
    functions = [x for x in gc.get_objects() if isinstance(x, types.FunctionType)]
    return sum(x.__code__.co_filename == "<plait form of results>" for x in functions)


@BY_NAME
@pytest.mark.parametrize("name", ["none", "static", "donated", "placed"])
def test_few_compiled_calls_are_kept(name, named, monkeypatch):
    """Calls with another size each time fill no memory, however they are found again."""
    monkeypatch.setattr("plait._jit.caches.MOST", 8)
    jitted = plait.jit(lambda x, y, n=None: {"sum": lax.add(x, y)}, **OPTIONS[name])
    before = result_makers()
    for size in range(1, 34):
        for _ in range(2):
            x, y = (plait.numpy.asarray(np.full(size, k)) for k in (0.0, 1.0))  # compiles nothing
            out = jitted(x, y=y) if named else jitted(x, y)
            assert out["sum"].shape == (size,)
    assert result_makers() - before <= 24
