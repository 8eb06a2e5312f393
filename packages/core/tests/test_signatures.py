"""What `jit` returns has the signature of what it was given, and not that of any call.

Invariant: the other side is Python's own signature of the user's function.
"""

import copy
import functools
import inspect
import pickle

import cloudpickle
import pytest

import plait


def f(x, y: int = 3, *, z=None) -> float:
    return x * y


WANT = inspect.signature(f)
WAYS = {
    "jit": plait.jit,
    "jit, static": lambda f: plait.jit(f, static_argnames="y"),
    "jit, donated": lambda f: plait.jit(f, donate_argnums=0),
    "jit of jit": lambda f: plait.jit(plait.jit(f)),
    "checkify": plait.checks.checkify,
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_it_is_that_of_the_function(way):
    g = way(f)
    for follow in (True, False):
        got = inspect.signature(g, follow_wrapped=follow)
        assert got == WANT and hash(got) == hash(WANT) and str(got) == str(WANT)
        assert list(got.parameters) == ["x", "y", "z"] and got.return_annotation is float
    assert inspect.getfullargspec(g) == inspect.getfullargspec(f)


def test_it_does_what_signatures_do():
    got = inspect.signature(plait.jit(f))
    assert got.bind(1, z=2).arguments == WANT.bind(1, z=2).arguments
    with pytest.raises(TypeError, match="missing a required argument"):
        got.bind(y=2)
    assert got.replace(return_annotation=int) == WANT.replace(return_annotation=int)
    fewer = list(WANT.parameters.values())[:1]
    assert str(got.replace(parameters=fewer)) == "(x) -> float"
    assert repr(got) == repr(WANT)
    for other in (copy.copy(got), copy.deepcopy(got), pickle.loads(pickle.dumps(got))):
        assert other == WANT


def test_of_methods_and_of_what_can_be_called():
    class C:
        @plait.jit
        def m(self, a, b=1):
            return a

        def __call__(self, q):
            return q

    assert str(inspect.signature(C().m, follow_wrapped=False)) == "(a, b=1)"
    assert str(inspect.signature(C.m, follow_wrapped=False)) == "(self, a, b=1)"
    assert str(inspect.signature(plait.jit(C()), follow_wrapped=False)) == "(q)"
    assert str(inspect.signature(plait.jit(C().__call__), follow_wrapped=False)) == "(q)"
    part = plait.jit(functools.partial(f, 1))
    assert inspect.signature(part, follow_wrapped=False) == inspect.signature(
        functools.partial(f, 1)
    )


def test_pickled_functions_have_theirs():
    g = cloudpickle.loads(cloudpickle.dumps(plait.jit(lambda a, b=2: a * b)))
    assert str(inspect.signature(g, follow_wrapped=False)) == "(a, b=2)" and float(g(3.0)) == 6.0
    assert copy.copy(g) is g and copy.deepcopy(g) is g


def test_it_is_not_made_until_it_is_looked_at(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a signature was made")

    with monkeypatch.context() as m:
        m.setattr(inspect, "signature", refuse)
        g = plait.jit(lambda x: x + 1)
        assert float(g(1.0)) == 2.0


@pytest.mark.parametrize("role", ["static_argnames", "donate_argnames"])
@pytest.mark.parametrize("name", ["a", "args"])
def test_roles_by_name_are_for_arguments_that_have_one(role, name):
    def f(a, /, b, *args, **kwargs):
        return b

    plait.jit(f, **{role: ("b", "anything")})
    with pytest.raises(ValueError, match=f"argnames '{name}'"):
        plait.jit(f, **{role: ("b", name)})
