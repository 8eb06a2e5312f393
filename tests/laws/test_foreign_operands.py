"""Operators leave objects of other libraries to these, and take what arrays are computed with.

Invariant: what an operator must do follows from Python's data model and from numpy, and is spelled
out here: no result is compared with one of Plait's own.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plait
import plait.numpy as pnp

BINARY = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "pow": operator.pow,
    "matmul": operator.matmul, "divmod": divmod, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor, "lshift": operator.lshift, "rshift": operator.rshift,
}  # fmt: skip
COMPARED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
"""Which comparison the right operand is asked for where the left one leaves it."""
IN_PLACE = {name: getattr(operator, f"i{name}") for name in BINARY if hasattr(operator, f"i{name}")}


class Bare:
    """Labels of another library: its operators say that they were asked, and for what."""

    def __init__(self, values: Any):
        self.values = np.asarray(values, np.float32)


def _answers(name: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: (name, self)


for _name in BINARY:
    setattr(Bare, f"__{_name}__", _answers(_name))
    setattr(Bare, f"__r{_name}__", _answers("r" + _name))
for _name in COMPARED:
    setattr(Bare, f"__{_name}__", _answers(_name))


class Converting(Bare):
    """As a series of pandas: numpy can make an array of it."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.values, dtype)


class Like(Converting):
    """As an array of xarray: it has all that an array has."""

    __array_priority__ = 50
    shape, ndim, size = (3,), 1, 3
    dtype = np.dtype(np.float32)

    def __len__(self) -> int:
        return 3

    def __getitem__(self, i: Any) -> Any:
        return self.values[i]


class Universal(Like):
    """As a quantity of pint: numpy's functions are its own."""

    def __array_ufunc__(self, f: Any, method: str, *xs: Any, **how: Any) -> Any:
        return (f.__name__, self)

    def __array_function__(self, f: Any, types: Any, xs: Any, how: Any) -> Any:
        return (f.__name__, self)


class Refusing(Converting):
    __array_ufunc__ = None


class Derived(np.ndarray):
    """As a quantity of astropy: an array of numpy's that numpy's operators leave to its class."""

    __array_priority__ = 10_000

    def __array_ufunc__(self, f: Any, method: str, *xs: Any, **how: Any) -> Any:
        return (f.__name__, self)


FOREIGN = [Bare, Converting, Like, Universal, Refusing]


def _under(transformation: str, f: Callable[[Any], Any], x: Any) -> Any:
    """Return `f` of a value that this transformation traces."""
    seen = []

    def traced(x: Any) -> Any:
        seen.append(f(x))
        return (x * 1.0).sum()

    if transformation == "none":
        traced(x)
    elif transformation == "vmap":
        plait.vmap(traced)(x[None])
    else:
        {
            "jit": plait.jit,
            "grad": plait.grad,
            "linearize": lambda f: lambda x: plait.linearize(f, x),
        }[transformation](traced)(x)
    return seen[-1]


VALUES = ["none", "jit", "grad", "vmap", "linearize"]


@pytest.mark.parametrize("transformation", VALUES)
@pytest.mark.parametrize("cls", FOREIGN)
def test_objects_of_others_decide(cls: type, transformation: str) -> None:
    o = cls([1.0, 2.0, 3.0])

    def asked(x: Any) -> Any:
        for name, f in BINARY.items():
            assert f(x, o) == ("r" + name, o), name
            assert f(o, x) == (name, o), name
        for name, f in IN_PLACE.items():
            assert f(x, o) == ("r" + name, o), name
        for name, back in COMPARED.items():
            assert getattr(operator, name)(x, o) == (back, o), name
            assert getattr(operator, name)(o, x) == (name, o), name
        return True

    assert _under(transformation, asked, pnp.ones(3))


def test_classes_of_numpy_arrays_that_have_functions_of_their_own_decide() -> None:
    x, o = pnp.ones(3), np.ones(3, np.float32).view(Derived)
    for name, ufunc in {
        "add": "add",
        "mul": "multiply",
        "pow": "power",
        "mod": "remainder",
    }.items():
        found = BINARY[name](x, o)
        assert found[0] == ufunc and found[1] is o
    assert (x < o)[0] == "greater" and (o < x)[0] == "less" and (o * x)[0] == "multiply"
    low = o.view(type("Low", (Derived,), {"__array_priority__": 2}))
    assert (x * low)[0] == "multiply"
    with pytest.raises(TypeError, match="Low"):  # it gives way to us, and would lose its units
        low * x


def test_an_object_that_says_nothing_is_refused_by_name() -> None:
    class Silent:
        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            return np.ones(3, dtype)

    x = pnp.ones(3)
    for name in {**BINARY, "lt": 0, "ge": 0}:
        f = BINARY.get(name) or getattr(operator, name)
        with pytest.raises(TypeError, match="Silent"):
            f(x, Silent())
        with pytest.raises(TypeError, match="Silent"):
            f(Silent(), x)
    assert (x == Silent()) is False and (x != Silent()) is True


class Ours:
    """An object that arrays are made of without asking, by the name that it has in JAX."""

    def __init__(self, values: Any):
        self.values = np.asarray(values, np.float32)

    def __jax_array__(self) -> Any:
        return pnp.asarray(self.values)


SUBCLASS = type("Memory", (np.ndarray,), {})
TAKEN = {
    "numpy": np.float32([1, 2, 3]), "scalar": np.float32(2), "double": np.float64(2), "int": 2,
    "float": 2.5, "bool": True, "without axes": np.asarray(np.float32(2)), "half": np.float16(2),
    "subclass": np.float32([1, 2, 3]).view(SUBCLASS), "converted": Ours([1, 2, 3]),
    "list of numpy": np.asarray([1, 2, 3]),
}  # fmt: skip


@pytest.mark.parametrize("transformation", VALUES)
@pytest.mark.parametrize("kind", TAKEN)
def test_numbers_and_arrays_of_numpy_are_taken(kind: str, transformation: str) -> None:
    o = TAKEN[kind]
    plain = o.values if isinstance(o, Ours) else np.asarray(o)
    host = np.float32([4, 5, 6])

    def results(x: Any) -> Any:
        return [f(*xs) for f in (operator.add, operator.pow, operator.lt, operator.eq)
                for xs in ((x, o), (o, x))]  # fmt: skip

    found = _under(transformation, lambda x: [type(r) for r in results(x)], pnp.asarray(host))
    assert all(issubclass(c, type(pnp.ones(3)).__mro__[1]) for c in found)
    want = [f(*xs) for f in (operator.add, operator.pow, operator.lt, operator.eq)
            for xs in ((host, plain), (plain, host))]  # fmt: skip
    for a, b in zip(results(pnp.asarray(host)), want):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-6)


@pytest.mark.parametrize("transformation", VALUES)
@pytest.mark.parametrize(
    "other", [[1.0, 2.0, 3.0], (1, 2, 3), {1}, {1: 2}], ids=lambda v: type(v).__name__
)
def test_containers_are_refused(other: Any, transformation: str) -> None:
    """Lists would be repeated by an array that is an index, and compared as objects."""

    def refused(x: Any) -> bool:
        for name in (*BINARY, "eq", "ne"):
            f = BINARY.get(name) or getattr(operator, name)
            for xs in ((x, other), (other, x)):
                with pytest.raises(TypeError, match=type(other).__name__):
                    f(*xs)
        return True

    assert _under(transformation, refused, pnp.ones(3))
    with pytest.raises(TypeError, match="list"):
        pnp.asarray(2) * [1, 2]


@pytest.mark.sampled(16)
@pytest.mark.parametrize("method, expected", [
    ("set", [7, 8, 1]), ("add", [8, 9, 1]), ("subtract", [-6, -7, 1]), ("multiply", [7, 8, 1]),
    ("divide", [1 / 7, 1 / 8, 1]), ("power", [1, 1, 1]), ("min", [1, 1, 1]), ("max", [7, 8, 1]),
])  # fmt: skip
@pytest.mark.parametrize("values", [
    [7.0, 8.0], (7, 8), range(7, 9), np.float32([7, 8]), memoryview(np.float32([7, 8])),
    Converting([7, 8]), [np.float32(7), 8],
], ids=["list", "tuple", "range", "numpy", "memory", "foreign", "mixed"])  # fmt: skip
def test_what_is_written_may_be_a_list(method: str, expected: list, values: Any) -> None:
    x = pnp.ones(3)
    np.testing.assert_allclose(getattr(x.at[:2], method)(values), expected, rtol=1e-6)
    np.testing.assert_allclose(getattr(x.at[np.arange(2)], method)(values), expected, rtol=1e-6)
    traced = plait.jit(lambda x: getattr(x.at[:2], method)(values))
    np.testing.assert_allclose(traced(x), expected, rtol=1e-6)


def test_lists_of_traced_values_are_written() -> None:
    f = lambda x: (x.at[:2].set([x[2], 5.0]) * pnp.asarray([1.0, 2.0, 3.0])).sum()  # noqa: E731
    np.testing.assert_allclose(plait.grad(f)(pnp.asarray([1.0, 2.0, 3.0])), [0, 0, 4])
    out = plait.vmap(lambda x: x.at[0].set([x[1, 0], x[0, 0]]))(pnp.arange(8.0).reshape(2, 2, 2))
    np.testing.assert_allclose(out, [[[2, 0], [2, 3]], [[6, 4], [6, 7]]])


@pytest.mark.parametrize("values", ["ab", b"ab", None, {1.0}, object(), Ellipsis])
def test_what_is_no_number_is_not_written(values: Any) -> None:
    with pytest.raises(TypeError):
        pnp.ones(3).at[:2].set(values)
