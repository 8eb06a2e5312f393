"""Classes that are mapped in ways of their own: arrays whose axes have names.

Invariant: what is expected is numpy's, and the classes here are not trees.
"""

import numpy as np
import pytest

import plait
from plait.errors import ArgumentError, AxisError, NotAnArrayError, RegistrationError
from plait.ext.sizes import symbolic_dims

pytestmark = pytest.mark.feature("B20")
pnp = plait.numpy


class NamedArray:
    """An array whose axes have names."""

    def __init__(self, names, data):
        self.names, self.data = tuple(names), data
        assert len(self.names) == np.ndim(data)


class NamedMapSpec:
    """Which axis is mapped: its name, and where it is or shall be."""

    def __init__(self, name, axis):
        self.name, self.axis = name, axis

    def __repr__(self):
        return f"NamedMapSpec({self.name!r}, {self.axis})"


def to_elt(cont, get_idx, x, spec):
    assert x.names[spec.axis] == spec.name
    return NamedArray([n for n in x.names if n != spec.name], cont(x.data, spec.axis))


def from_elt(cont, axis_size, x, spec):
    names = [*x.names[: spec.axis], spec.name, *x.names[spec.axis :]]
    return NamedArray(names, cont(axis_size, x.data, spec.axis))


def dot(x, y, name):
    i, j = x.names.index(name), y.names.index(name)
    names = [n for n in (*x.names, *y.names) if n != name]
    return NamedArray(names, pnp.tensordot(x.data, y.data, (i, j)))


@pytest.fixture
def registered():
    plait.register_vmappable(NamedArray, NamedMapSpec, int, to_elt, from_elt, None)
    yield
    plait.unregister_vmappable(NamedArray)
    with pytest.raises(NotAnArrayError):
        plait.vmap(lambda x: x)(NamedArray("i", np.ones(2)))


A = np.arange(6, dtype=np.float32).reshape(3, 2)


def test_mapped_as_a_spec_says(registered):
    f = lambda x: NamedArray(x.names, pnp.sin(x.data))  # noqa: E731
    g = plait.vmap(f, NamedMapSpec("i", 0), NamedMapSpec("i", 1), axis_size=3)
    y = g(NamedArray("ij", A))
    assert y.names == ("j", "i")
    np.testing.assert_allclose(np.asarray(y.data), np.sin(A).T, rtol=1e-6)
    program = plait.make_program(lambda a: g(NamedArray("ij", a)).data)(A)
    assert [e.prim.name for e in program.eqns].count("core.sin") == 1


def test_beside_arrays_in_trees(registered):
    """Entries in prefixes of trees; sizes are known from arrays, too; None leaves a value whole."""

    def f(t, w, n):
        return {"dot": dot(t["x"], w, "k"), "n": n * t["s"]}, t["x"]

    mapped = plait.vmap(
        f,
        in_axes=({"x": NamedMapSpec("i", 1), "s": 0}, None, 0),
        out_axes=({"dot": NamedMapSpec("i", 0), "n": 0}, NamedMapSpec("i", 1)),
    )
    x, w = NamedArray("ki", A), NamedArray("jk", np.ones((4, 3), np.float32))
    got, back = mapped({"x": x, "s": np.float32([1, 2])}, w, np.float32([10, 100]))
    assert got["dot"].names == ("i", "j")
    np.testing.assert_allclose(np.asarray(got["dot"].data), A.T @ np.ones((3, 4)), rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(got["n"]), [10, 200])
    np.testing.assert_array_equal(np.asarray(back.data), A)


def test_maps_of_maps(registered):
    f = plait.vmap(
        plait.vmap(lambda x: NamedArray((), x.data * 2), NamedMapSpec("j", 0), NamedMapSpec("j", 0),
                   axis_size=2),
        NamedMapSpec("i", 0), NamedMapSpec("i", 1), axis_size=3,
    )  # fmt: skip
    y = f(NamedArray("ij", A))
    assert y.names == ("j", "i")
    np.testing.assert_array_equal(np.asarray(y.data), 2 * A.T)


def test_results_that_were_made_inside(registered):
    f = lambda v: NamedArray("k", pnp.stack([v, -v]))  # noqa: E731
    y = plait.vmap(f, out_axes=NamedMapSpec("i", 0))(np.float32([1, 2, 3]))
    assert y.names == ("i", "k")
    np.testing.assert_array_equal(np.asarray(y.data), [[1, -1], [2, -2], [3, -3]])
    same = plait.vmap(lambda v: NamedArray("k", A[0]), out_axes=NamedMapSpec("i", 1))(np.ones(3))
    np.testing.assert_array_equal(np.asarray(same.data), np.stack([A[0]] * 3, 1))


class Slots:
    """Values that know how they are mapped, and where their elements are."""

    def __init__(self, *parts):
        self.parts = parts

    def axis_size(self, spec):
        return self.parts[0].shape[0]

    def to_elt(self, cont, get_idx, spec):
        return Slots(*[cont(p, 0) for p in self.parts], get_idx()) if spec.index else Slots(
            *[cont(p, 0) for p in self.parts]
        )  # fmt: skip

    def from_elt(self, cont, axis_size, spec):
        return Slots(*[cont(axis_size, p, 0) for p in self.parts])


class Slot:
    def __init__(self, index=False):
        self.index = index


@pytest.fixture
def by_methods():
    plait.register_vmappable(Slots, Slot)
    yield
    plait.unregister_vmappable(Slots)


def test_methods_serve_as_well(by_methods):
    y = plait.vmap(lambda s: Slots(s.parts[0] * 2), Slot(), Slot())(Slots(A))
    np.testing.assert_array_equal(np.asarray(y.parts[0]), A * 2)


def test_the_index_is_made_when_it_is_asked_for_and_once(by_methods):
    def of(index, *args):
        f = lambda *ss: Slots(sum(p.sum() for s in ss for p in s.parts))  # noqa: E731
        return plait.vmap(f, (Slot(index),) * len(args), Slot())(*map(Slots, args)).parts[0]

    def iotas(f, *args):
        return [e.prim.name for e in plait.make_program(f)(*args).eqns].count("core.iota")

    assert iotas(lambda a, b: of(False, a, b), A, A) == 0
    assert iotas(lambda a, b: of(True, a, b), A, A) == 1
    np.testing.assert_array_equal(np.asarray(of(True, A, A)), 2 * (A.sum(1) + np.arange(3)))
    plait.unregister_vmappable(Slots)
    plait.register_vmappable(Slots, Slot, make_iota=lambda n: 10 * pnp.arange(n))
    np.testing.assert_array_equal(np.asarray(of(True, A)), A.sum(1) + 10 * np.arange(3))


class Lanes(int):
    """A number of lanes."""


class InLanes(Slots):
    def axis_size(self, spec):
        return Lanes(super().axis_size(spec))


@pytest.mark.feature("B19")
def test_the_index_of_sizes_that_are_no_ints():
    """Of a class of one's own, which says how its indices are made; and known by name only."""
    asked = []

    def lanes(n):
        asked.append(type(n))
        return 10 * pnp.arange(int(n))

    plait.register_vmappable(InLanes, Slot, Lanes, make_iota=lanes)
    f = lambda s: type(s)(s.parts[0].sum() + s.parts[1])  # noqa: E731
    plait.register_vmappable(Slots, Slot)
    y = plait.vmap(lambda s: InLanes(*f(s).parts), Slot(True), Slot())(InLanes(A))
    np.testing.assert_array_equal(np.asarray(y.parts[0]), A.sum(1) + 10 * np.arange(3))
    assert asked == [Lanes]
    plait.unregister_vmappable(InLanes)
    g = lambda x: plait.vmap(f, Slot(True), Slot())(Slots(x)).parts[0]  # noqa: E731
    (n,) = symbolic_dims("n")
    program = plait.make_program(g)(plait.ShapeDtypeStruct((n, 2), "float32"))
    assert program.out_avals[0].shape == (n,)
    for x in (A, A[:2]):
        np.testing.assert_array_equal(np.asarray(g(x)), x.sum(1) + np.arange(len(x)))
    plait.unregister_vmappable(Slots)


def test_a_spec_type_may_be_shared(registered):
    class Other(NamedArray):
        pass

    plait.register_vmappable(
        Other, NamedMapSpec, int, lambda c, i, x, s: Other("", c(x.data, s.axis)), from_elt
    )
    double = plait.vmap(lambda x: NamedArray(x.names, x.data * 2), NamedMapSpec("i", 0),
                        NamedMapSpec("i", 0), axis_size=3)  # fmt: skip
    a = A[:, 0]
    assert plait.is_vmappable(Other("i", a)) and double(Other("i", a)).names == ("i",)
    plait.unregister_vmappable(Other)
    assert not plait.is_vmappable(Other("i", a)) and plait.is_vmappable(NamedArray("i", a))
    np.testing.assert_array_equal(np.asarray(double(NamedArray("i", a)).data), a * 2)
    with pytest.raises(ArgumentError, match="NamedMapSpec"):
        double(Other("i", a))


def test_a_spec_type_that_nobody_has_any_more_is_no_entry():
    plait.register_vmappable(Slots, Slot)
    plait.unregister_vmappable(Slots)
    with pytest.raises(plait.errors.ShapeError, match="in_axes"):
        plait.vmap(lambda x: x, Slot())


def test_registered_once(registered):
    with pytest.raises(RegistrationError, match="NamedArray is registered already"):
        plait.register_vmappable(NamedArray, Slot, int, to_elt, from_elt)
    with pytest.raises(RegistrationError, match="Slots is not registered"):
        plait.unregister_vmappable(Slots)
    with pytest.raises(ArgumentError, match="no method 'to_elt'"):
        plait.register_vmappable(Slot, NamedMapSpec)
    for spec in (int, bool, tuple, dict, list, type(None)):
        with pytest.raises(ArgumentError, match="has a meaning"):
            plait.register_vmappable(Slots, spec)
    assert not plait.is_vmappable(Slots(A))
    for data in (type(pnp.ones(2)), float, 3):
        with pytest.raises(ArgumentError):
            plait.register_vmappable(data, NamedMapSpec, int, to_elt, from_elt)


def test_mistakes(registered, by_methods):
    x, spec = NamedArray("ij", A), NamedMapSpec("i", 0)
    with pytest.raises(ArgumentError, match="which is for values of NamedArray"):
        plait.vmap(lambda v: v, spec, axis_size=3)(A)
    with pytest.raises(ArgumentError, match="an entry of type Slot"):
        plait.vmap(lambda v: v, spec, axis_size=3)(Slots(A))
    with pytest.raises(NotAnArrayError, match="NamedArray"):
        plait.vmap(lambda v: 1.0)(x)
    with pytest.raises(NotAnArrayError, match="NamedArray"):
        plait.vmap(lambda v: v, spec, 0, axis_size=3)(x)
    with pytest.raises(NotAnArrayError, match="NamedArray"):
        plait.vmap(lambda v: v, spec, None, axis_size=3)(x)
    with pytest.raises(AxisError, match="is not known"):
        plait.vmap(lambda v: v, spec, spec)(x)
    with pytest.raises(AxisError, match="has size 3"):
        plait.vmap(lambda v: v, spec, spec, axis_size=2)(x)
    with pytest.raises(AxisError, match="differ in size"):
        plait.vmap(lambda v, w: v, (Slot(), 0), Slot())(Slots(A), np.ones(2))
    with pytest.raises(AxisError, match="out of range"):
        plait.vmap(lambda v: v, NamedMapSpec("j", 1), NamedMapSpec("j", 7), axis_size=2)(x)
    with pytest.raises(ArgumentError, match="chunk"):
        plait.vmap(lambda v: v, spec, spec, axis_size=3, chunk=2)(x)


def test_values_that_do_not_vary_pass_as_they_are(registered):
    x = NamedArray("j", A[0])
    got = plait.vmap(lambda v, w: (w is x, v + w.data)[1], (0, None))(A, x)
    np.testing.assert_array_equal(np.asarray(got), A + A[0])


def test_classes_within_classes(registered):
    """Parts that are mapped in ways of their own are given on, with an entry of theirs."""

    class Labelled:
        def __init__(self, label, inside):
            self.label, self.inside = label, inside

    class ByLabel:
        def __init__(self, label, spec):
            self.label, self.spec = label, spec

    def elt(cont, get_idx, x, spec):
        return Labelled(x.label, cont(x.inside, spec.spec))

    def whole(cont, axis_size, x, spec):
        return Labelled(x.label, cont(axis_size, x.inside, spec.spec))

    plait.register_vmappable(Labelled, ByLabel, int, elt, whole)
    try:
        f = lambda x: Labelled(x.label + "!", NamedArray(x.inside.names, -x.inside.data))  # noqa: E731
        ends = ByLabel("a", NamedMapSpec("i", 0)), ByLabel("a", NamedMapSpec("i", 1))
        y = plait.vmap(f, *ends, axis_size=3)(Labelled("a", NamedArray("ij", A)))
        assert (y.label, y.inside.names) == ("a!", ("j", "i"))
        np.testing.assert_array_equal(np.asarray(y.inside.data), -A.T)
    finally:
        plait.unregister_vmappable(Labelled)


def test_where_jax_has_them():
    from plait.interpreters import batching

    assert batching.register_vmappable is plait.register_vmappable
    assert batching.unregister_vmappable is plait.unregister_vmappable
