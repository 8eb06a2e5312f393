"""A class that is not a tree, under all transformations: jitted, differentiated and mapped, in any
order.

Invariant: what is expected is numpy's.
"""

import numpy as np
import pytest

import plait
from plait import lax

A = np.arange(6, dtype=np.float32).reshape(3, 2) + 1


class NamedArray:
    """An array whose axes have names."""

    def __init__(self, names, data):
        self.names, self.data = tuple(names), data

    def to_parts(self):
        return (self.data,), self.names

    @classmethod
    def from_parts(cls, names, parts):
        return cls(names, *parts)

    def to_elt(self, cont, get_idx, spec):
        return NamedArray([n for n in self.names if n != spec.name], cont(self.data, spec.axis))

    def from_elt(self, cont, axis_size, spec):
        names = [*self.names[: spec.axis], spec.name, *self.names[spec.axis :]]
        return NamedArray(names, cont(axis_size, self.data, spec.axis))


class NamedMapSpec:
    def __init__(self, name, axis):
        self.name, self.axis = name, axis


@pytest.fixture(autouse=True)
def registered():
    plait.register_vmappable(NamedArray, NamedMapSpec)
    plait.register_jittable(NamedArray)
    plait.register_adable(NamedArray)
    yield
    plait.unregister_vmappable(NamedArray)
    plait.unregister_jittable(NamedArray)
    plait.unregister_adable(NamedArray)


def cube(x):
    return (x.data**3).sum()


def rows(f, out="i", **how):
    return plait.vmap(f, NamedMapSpec("i", 0), NamedMapSpec(out, 0), axis_size=3, **how)


def check(y, names, data):
    assert type(y) is NamedArray and y.names == tuple(names)
    np.testing.assert_allclose(np.asarray(y.data), data, rtol=1e-5)


ORDERS = {
    "vmap of grad": lambda: rows(plait.grad(cube)),
    "jit of vmap of grad": lambda: plait.jit(rows(plait.grad(cube))),
    "vmap of jit of grad": lambda: rows(plait.jit(plait.grad(cube))),
    "vmap of grad of jit": lambda: rows(plait.grad(plait.jit(cube))),
    "jit of grad of vmap": lambda: plait.jit(plait.grad(summed)),
    "grad of jit of vmap": lambda: plait.grad(plait.jit(summed)),
}


def summed(x):
    return rows(lambda v: NamedArray((), cube(v)))(x).data.sum()


@pytest.mark.feature("B20")
@pytest.mark.feature("B21")
@pytest.mark.parametrize("order", ORDERS)
def test_gradients(order):
    check(ORDERS[order]()(NamedArray("ij", A)), "ij", 3 * A**2)


def test_collectives_and_loops_inside():
    def f(x):
        total = lax.psum(x.data, "t")
        step = lambda c, _: (c * 2 + total, None)  # noqa: E731
        return NamedArray(x.names, lax.scan(step, x.data, None, length=2)[0])

    want = 4 * A + 3 * A.sum(0)
    check(plait.jit(rows(f, axis_name="t"))(NamedArray("ij", A)), "ij", want)
