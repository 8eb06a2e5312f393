"""Public functions are pickled by name, as numpy's and any module's are.

Invariant: every public module is asked for all its names, so that a new function is judged, too.
"""

import copy
import importlib
import inspect
import pickle
import types

import pytest

import plait

NAMES = """
plait plait.numpy plait.numpy.linalg plait.numpy.fft plait.lax plait.lax.linalg plait.nn
plait.nn.initializers plait.random plait.image plait.tree plait.tree_util plait.dtypes plait.debug
plait.scipy.special plait.scipy.linalg plait.scipy.signal plait.scipy.fft plait.scipy.ndimage
plait.scipy.optimize plait.scipy.integrate plait.scipy.stats plait.sharding plait.checks plait.text
"""
MODULES = NAMES.split()
FAMILIES = ["norm", "beta", "poisson", "dirichlet", "multivariate_normal"]


def held(owner):
    """Return the functions among the public names of a module or a family of distributions."""
    names = [n for n in dir(owner) if not n.startswith("_")]
    found = {n: getattr(owner, n) for n in names}
    return {n: f for n, f in found.items() if isinstance(f, types.FunctionType)}


def unfaithful(owner):
    """Return the names of functions that do not come back from pickle as the same object."""

    def is_same(f):
        try:
            return pickle.loads(pickle.dumps(f)) is f
        except (pickle.PicklingError, AttributeError, ImportError):
            return False

    return [n for n, f in held(owner).items() if not is_same(f)]


@pytest.mark.parametrize("name", MODULES)
def test_functions_of_modules(name):
    module = importlib.import_module(name)
    assert held(module)
    assert not unfaithful(module)


@pytest.mark.parametrize("name", FAMILIES)
def test_functions_of_distributions(name):
    family = getattr(plait.scipy.stats, name)
    found = {n: f for n, f in inspect.getmembers(family) if isinstance(f, types.FunctionType)}
    assert found
    for f in found.values():
        assert pickle.loads(pickle.dumps(f)) is f


def test_trees_of_functions():
    kept = {"act": plait.nn.relu, "draw": plait.random.normal, "parts": (plait.lax.add,)}
    assert pickle.loads(pickle.dumps(kept)) == kept


def double(x):
    return x * 2


@plait.jit
def jitted(x):
    return x + 1


def test_jitted_functions_that_have_their_own_name():
    assert pickle.loads(pickle.dumps(jitted)) is jitted
    with pytest.raises(pickle.PicklingError):  # it has the name of `double`, which is another one
        pickle.dumps(plait.jit(double))


def test_compiled_programs_say_what_to_pickle():
    staged = plait.jit(double).trace(1.0)
    for stage in (staged, staged.lower(), staged.lower().compile()):
        with pytest.raises(plait.PlaitError, match="of double cannot be pickled") as e:
            pickle.dumps(stage)
        assert "plait.export" in e.value.fix
        assert copy.copy(stage) is copy.deepcopy([stage])[0] is stage
