"""The errors that functions of arrays raise are named where the functions are described.

Invariant: errors are provoked under `eval_shape`, where nothing is compiled; a description may name
the class of an error or one of its base classes.
"""

import inspect

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait.ext import PlaitError
from plait.typing import ArrayLike

MODULES = {"numpy": pnp, "numpy.linalg": pnp.linalg, "numpy.fft": pnp.fft}
SILENT = {
    "array_repr", "array_str", "frompyfunc", "isscalar", "iterable", "save", "savez",
}  # fmt: skip
"""Functions that take anything."""
KINDS = (np.dtype(bool), np.dtype(np.int32), np.dtype(np.float32), np.dtype(np.complex64))


def functions():
    """The public functions, each once, by the first of its names."""
    found = {}
    for path, module in MODULES.items():
        for name in module.__all__:
            f = getattr(module, name)
            inner = inspect.unwrap(f)
            if inspect.isfunction(inner) and inner.__module__.startswith("plait"):
                found.setdefault(inner, (f"{path}.{name}", f))
    return dict(found.values())


FUNCTIONS = functions()


def error(f, *xs, **options):
    """The class of the error of a call on shapes; None if there is none, or it is not ours."""
    given = [x for x in xs if isinstance(x, plait.ShapeDtypeStruct)]

    def call(*values):
        rest = iter(values)
        return f(
            *(next(rest) if isinstance(x, plait.ShapeDtypeStruct) else x for x in xs), **options
        )

    try:
        plait.eval_shape(call, *given)
    except PlaitError as e:
        return type(e)
    except Exception:
        return None


def wrong_calls(f):
    """Yield the errors of calls with one mistake, of a function of arrays only."""
    parameters = inspect.signature(f).parameters
    kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    needed = [p for p in parameters.values() if p.default is p.empty and p.kind in kinds]
    if not needed or any(p.annotation != ArrayLike for p in needed):
        return
    every = [[plait.ShapeDtypeStruct((2, 2), k)] * len(needed) for k in KINDS]
    right = [xs for xs in every if error(f, *xs) is None]
    if not right:
        return
    good = right[-1]
    yield error(f, "text", *good[1:])
    yield from (error(f, *xs) for xs in every if xs not in right)
    if "axis" in parameters:
        yield error(f, *good, axis=7)
    if len(needed) == 2:
        yield error(f, *(plait.ShapeDtypeStruct((n,), good[0].dtype) for n in (2, 3)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_of_wrong_calls_are_described(name):
    f = FUNCTIONS[name]
    text = f.__doc__ or ""
    assert "aises" in text or name.rpartition(".")[2] in SILENT
    for kind in filter(None, {*wrong_calls(f)}):
        assert any(c.__name__ in text for c in kind.__mro__[: kind.__mro__.index(PlaitError)]), kind


def test_calls_are_wrong():
    """The calls above do raise errors, of most functions."""
    assert sum(any(wrong_calls(f)) for f in FUNCTIONS.values()) > len(FUNCTIONS) / 2
