"""Calls that work, each with one argument changed: what is refused is refused in three parts.

The calls are those of `jax_names`.  An argument becomes a value of another kind, an integer becomes
an array without axes, a keyword is unknown, or all arguments are missing.  PLAIT_CHANGED_CALLS=all
changes the calls of every function, instead of one in 24.

Invariant: whether a changed call is accepted is judged elsewhere; an integer that is an array gives
what the integer gives.
"""

import inspect
import os
import pickle
import traceback
import warnings
import zlib
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from tests.jax_names import calls
from tests.typing import public_functions

import plait
from plait.errors import PlaitError

FILE = Path(__file__).parents[1] / "jax_names" / "answers.json.xz"
OTHERS = {
    "string": "abc", "None": None, "object": object(), "lists": [[1, 2], [3]], "dict": {"a": 1},
    "function": len, "float": 1.5, "negative": -7,
}  # fmt: skip


def chosen():
    """Return the first call of each function that jax accepted, of a fixed sample of functions."""
    first = {}
    for call in calls.load(str(FILE)):
        if "raises" not in call["answer"]:
            first.setdefault(call["path"], call)
    every = 1 if os.environ.get("PLAIT_CHANGED_CALLS") == "all" else 24
    return [call for path, call in first.items() if zlib.crc32(path.encode()) % every == 0]


def outcome(f, args, named):
    """Return the result of a call, or its exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return f(*args, **named)
        except Exception as e:
            return e


def is_int(x):
    return isinstance(x, int) and not isinstance(x, bool)


def changes(args, named):
    """Yield (description, positional arguments, named arguments, changed integer or None)."""
    yield "an unknown keyword", args, named | {"axxes": 1}, None
    yield "no arguments", [], {}, None
    for key, old in [*enumerate(args), *named.items()]:
        others = dict(OTHERS)
        if is_int(old):
            others["array"] = np.int32(old), plait.numpy.int32(old)
        for word, new in others.items():
            for value in new if word == "array" else (new,):
                yield (
                    f"{word} as argument {key}",
                    [value if i == key else x for i, x in enumerate(args)],
                    {name: value if name == key else x for name, x in named.items()},
                    old if word == "array" else None,
                )


@pytest.mark.sampled(4)
@pytest.mark.parametrize("call", chosen(), ids=lambda call: call["path"])
def test_refusals_have_three_parts(call):
    with plait.enable_x64(call["x64"]):
        f = calls.find(call["path"].replace("jax.", "plait.", 1))
        args = [calls.unpack(x, plait) for x in call["args"]]
        named = {name: calls.unpack(x, plait) for name, x in call["named"].items()}
        wanted = outcome(f, args, named)
        if isinstance(wanted, Exception):
            return  # a difference from jax, which `jax_names.intended` lists
        wrong = {}
        for what, given, by_name, same in changes(args, named):
            out = outcome(f, given, by_name)
            if isinstance(out, PlaitError):
                if not out.fix or "\n  at " not in str(out):
                    wrong[what] = str(out)
            elif isinstance(out, Exception):
                wrong[what] = repr(out)
            elif same is not None and plait.tree.structure(out) != plait.tree.structure(wanted):
                wrong[what] = "another structure than with the integer"
        assert wrong == {}


MODULES = [*public_functions.SURFACES, *public_functions.OTHERS, "plait.profiler"]


@pytest.mark.parametrize("module", MODULES)
def test_every_public_function_explains_an_unknown_keyword(module):
    """No function is left out because it is thin, found later, or a context manager."""
    space, wrong = import_module(module), {}
    for name in getattr(space, "__all__", ()):
        f = getattr(space, name)
        plain = inspect.isfunction(inspect.unwrap(f)) and f.__module__.startswith("plait")
        if not plain or takes_any_keyword(f):
            continue
        out = outcome(f, (), {"no_such_option": 1})
        if not isinstance(out, PlaitError) or f.__name__ not in str(out) or not out.fix:
            wrong[name] = repr(out)
    assert wrong == {}


def takes_any_keyword(f):
    kinds = [p.kind for p in inspect.signature(f).parameters.values()]
    return inspect.Parameter.VAR_KEYWORD in kinds


def test_what_functions_themselves_raise_is_left_alone():
    """A TypeError of the user's own code, or of Python within a function, is not a refused call."""

    def own(x):
        return len(x, x)

    with pytest.raises(TypeError) as e:
        plait.eval_shape(own, np.ones(3))
    assert not isinstance(e.value, PlaitError)
    with pytest.raises(TypeError) as e:
        plait.tree.leaves([1], is_leaf=lambda: True)
    assert not isinstance(e.value, PlaitError)
    assert [f.name for f in traceback.extract_tb(e.value.__traceback__)][0] == e.traceback[0].name


@pytest.mark.parametrize("module", MODULES)
def test_functions_that_explain_calls_can_be_pickled(module):
    space = import_module(module)
    for name in getattr(space, "__all__", ()):
        f = getattr(space, name)
        if inspect.isfunction(f) and f.__module__.startswith("plait"):
            assert pickle.loads(pickle.dumps(f)) is f, name


ANSWERING = sorted({*MODULES, "plait.sharding", "plait.export"} - {"plait.events"})
"""Modules with advice; `plait.events` stands below it, and imports nothing of Plait."""


@pytest.mark.parametrize("module", ANSWERING)
def test_a_missing_name_is_answered(module):
    """The error names the module as users write it, and close names of it."""
    space = import_module(module)
    public = [n for n in getattr(space, "__all__", ()) if len(n) > 4 and n.islower()]
    name = f"{public[0]}_" if public else "no_such_name"
    with pytest.raises(PlaitError) as e:
        getattr(space, name)
    assert isinstance(e.value, AttributeError)
    assert "plait_numpy" not in str(e.value)
    if public:
        assert public[0] in e.value.fix
    assert not hasattr(space, "_private") and not hasattr(space, "__no_such__")


def test_keywords_of_other_libraries():
    for call, words in {
        lambda: plait.random.uniform(plait.random.key(0), low=0.0): "write minval= for low=",
        lambda: plait.nn.softmax(np.ones(3), dim=0): "write axis= for dim=",
        lambda: plait.scipy.stats.norm.pdf(0.0, scal=1.0): "write scale= for scal=",
        lambda: plait.grad(np.sin, argnum=0): "write argnums= for argnum=",
        lambda: plait.vmap(np.sin, in_axis=0): "write in_axes= for in_axis=",
        lambda: plait.jit(np.sin, static_argnum=0): "write static_argnums= for static_argnum=",
        lambda: plait.lax.scan(f=len, init=0, x=np.ones(3)): "write xs= for x=",
        lambda: plait.image.resize(np.ones((2, 2)), size=(3, 3)): "write shape= for size=",
        lambda: plait.scipy.sparse.linalg.cg(np.eye(2), np.ones(2), rtol=1e-3): "write tol= for",
        lambda: plait.scipy.optimize.minimize(len): "it is called as minimize(fun, x0,",
        lambda: plait.debug.progress(): "it is called as progress(f, total=None,",
        lambda: plait.profiler.by_line(len, repeats=3): "write repeat= for repeats=",
        lambda: plait.profiler.start_trace(): "it is called as start_trace(",
        lambda: plait.lax.while_loop(len, len): "it is called as while_loop(cond_fun, body_fun,",
    }.items():
        with pytest.raises(TypeError) as e:
            call()
        assert isinstance(e.value, PlaitError) and words in str(e.value), str(e.value)
