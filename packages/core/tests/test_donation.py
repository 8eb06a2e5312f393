"""Donated arguments: they are gone afterwards, whoever could use their memory."""

import warnings
import weakref

import numpy as np
import pytest

import plait
from plait._base.jaxlib_api import HAS_NEW_VIEWS
from plait._core.array import laid, wrap
from plait._jit.roles import donated_leaves, role
from plait.errors import ArgumentError, DeletedArrayError, TypeRule

pnp = plait.numpy


def ones(*shape, dtype=np.float32):
    return pnp.asarray(np.ones(shape, dtype))


def none_of(f):
    """f(), which may not warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return f()


@pytest.mark.feature("C10")
def test_a_donated_array_is_gone():
    x = ones(3)
    y = none_of(lambda: plait.jit(lambda x: x + x - x, donate_argnums=0)(x))
    np.testing.assert_array_equal(y, np.ones(3))
    assert x.is_deleted() and not y.is_deleted()
    reads = (
        lambda: np.asarray(x), lambda: plait.device_get(x), lambda: x + 1, lambda: x.tolist(),
        lambda: plait.jit(lambda v: v)(x),
    )  # fmt: skip
    for read in reads:
        with pytest.raises(RuntimeError, match="donated or deleted"):
            read()


@pytest.mark.feature("C10")
def test_one_copy_in_a_loop():
    """Its memory is the result's, each time."""
    step = plait.jit(lambda x: x * 2, donate_argnums=0)
    x = ones(1000)
    places = set()
    for _ in range(5):
        places.add(x.unsafe_buffer_pointer())
        x = step(x)
    assert len(places) == 1
    np.testing.assert_array_equal(x, np.full(1000, 32))
    stats = step.lower(ones(1000)).compile().memory_analysis()
    assert stats.alias_size_in_bytes == 4000


@pytest.mark.feature("C11")
def test_what_no_result_can_use_is_told_once():
    f = plait.jit(lambda x, y: x.sum() + y.sum(), donate_argnums=(0, 1))
    text = r"No result can use the memory of these donated arguments: f32\[2\], i32\[2\]"
    with pytest.warns(UserWarning, match=text) as caught:
        f(ones(2), ones(2, dtype=np.int32))
    assert [w.filename for w in caught] == [__file__]
    none_of(lambda: f(ones(2), ones(2, dtype=np.int32)))
    g = plait.jit(lambda x, y, z: (x * 1, z.sum()), donate_argnums=(0, 1))
    with pytest.warns(UserWarning, match=r"donated arguments: f32\[2\]\n"):
        g(ones(2), ones(2), ones(2))


@pytest.mark.feature("S38")
def test_it_is_deleted_whether_it_was_used_or_not():
    x, y = ones(5), ones(5)
    with pytest.warns(UserWarning, match="donated arguments"):
        plait.jit(lambda x: x.sum(), donate_argnums=0)(x)
    assert x.is_deleted()
    f = plait.jit(lambda t: t["a"] * 2, donate_argnames="t")
    with pytest.warns(UserWarning, match="donated arguments"):
        f({"a": y, "b": (z := ones(2))})
    assert y.is_deleted() and z.is_deleted()


def many(a, b, c, d=0, *, e=0):
    return a


@pytest.mark.sampled(10)
@pytest.mark.parametrize("number", [3.0, 5, 0.0, 2j, np.float32(3), np.int32(7)])
def test_donated_numbers_are_there_for_the_next_call(number):
    """Whatever is kept of common numbers is not given away: not by name, in trees, beside another
    one, or to a compiled program."""
    double = plait.jit(lambda x: x * 2, donate_argnames="x")
    tree = plait.jit(lambda t, y: (t["p"] * 2, y * 3), donate_argnums=0)
    both = plait.jit(lambda x, y: (x + y, x * y), donate_argnums=(0, 1))
    deep = plait.jit(lambda t: plait.tree.map(lambda v: v * 2, t), donate_argnums=0)
    other = plait.jit(lambda x: x + 1)
    compiled = double.lower(number).compile()
    for _ in range(3):
        assert np.asarray(double(number)) == np.asarray(double(x=number)) == number * 2
        assert [np.asarray(v) for v in tree({"p": number}, number)] == [number * 2, number * 3]
        assert [np.asarray(v) for v in both(number, number)] == [number + number, number * number]
        assert np.asarray(compiled(number)) == number * 2
        assert {np.asarray(v).item() for v in deep([number] * 200)} == {number * 2}
        assert np.asarray(other(number)) == number + 1 and (pnp.add(number, 1) == number + 1)


@pytest.mark.feature("C12")
def test_which_leaves_are_donated():
    """Positions are the user's; leaves are numbered after static arguments were taken out."""
    table = [  # static, donated, args, kwargs -> leaves
        ((), (0,), (1, 2, 3), {}, (0,)),
        ((), (0, 2), (1, (2, 3), 4), {}, (0, 3)),
        ((), (1,), (1, (2, 3), 4), {}, (1, 2)),
        ((0,), (1,), (1, 2, 3), {}, (0,)),
        ((0, 1), (2,), (1, 2, 3), {}, (0,)),
        ((1,), (0, 2), (1, 2, {"x": 3, "y": 4}), {}, (0, 1, 2)),
        ((2,), (-1,), (1, 2, 3, 4), {}, (2,)),
        ((2,), (), (1, 2, 3), {"e": 5}, ()),
        ((), ("e",), (1, 2, 3), {"d": 9, "e": 5}, (4,)),
        ((), ("d",), (1, 2, 3, 4), {}, (3,)),
    ]
    for static, donated, args, kwargs, want in table:
        nums = [d for d in donated if isinstance(d, int)]
        names = [d for d in donated if isinstance(d, str)]
        s, d = role(many, static, None, "static"), role(many, nums or None, names or None, "donate")
        assert donated_leaves(args, kwargs, s, d) == want, (static, donated)


@pytest.mark.feature("C12")
def test_what_is_donated_follows_the_arguments_of_each_call():
    """Where trees have other sizes than before, other leaves are donated: all of the donated
    argument, and none of its neighbours."""
    f = plait.jit(
        lambda t, x, u=(): plait.tree.map(lambda v: v + 1, (t, x, u)), donate_argnums=(0, 2)
    )
    trees = [1, 3, 0, 2, 1, 0, 3]
    for _ in range(2):
        for n in trees:
            for m in trees:
                t, x, u = [ones(2) for _ in range(n)], ones(2), tuple([ones(2) for _ in range(m)])
                f(t, x, u)
                assert all(v.is_deleted() for v in (*t, *u)) and not x.is_deleted()


@pytest.mark.feature("C12")
def test_roles_are_checked():
    for static, donated in (((0, 1), (1,)), (0, 0), (-1, 3)):
        with pytest.raises(ArgumentError, match="both static and donated") as e:
            plait.jit(many, static_argnums=static, donate_argnums=donated)
        assert e.value.fix
    with pytest.raises(ValueError, match="both static and donated"):
        plait.jit(many, static_argnames="b", donate_argnums=1)
    with pytest.raises(ArgumentError, match="donate_argnums 4 is out of range: .* 4 positional"):
        plait.jit(many, donate_argnums=4)
    f = plait.jit(lambda *xs: xs[0], static_argnums=1, donate_argnums=2)
    text = "1 positional arguments were given to .* static \\(1\\) or donated \\(2\\)"
    with pytest.raises(ValueError, match=text):
        f(ones(2))


@pytest.mark.feature("C13")
def test_inside_a_traced_function_nothing_is_donated():
    a = ones(3) * 3
    inner = plait.jit(lambda y: y**2, donate_argnums=0)
    got = none_of(lambda: plait.jit(lambda x: inner(x))(a))
    np.testing.assert_array_equal(got, [9, 9, 9])
    assert not a.is_deleted()
    b = ones(3)
    assert none_of(lambda: plait.jit(lambda x: inner(x) + x)(b))[0].item() == 2
    assert not b.is_deleted()


# ---- arrays that numpy has read ------------------------------------------------------------------


def of_many_leaves(ahead):
    """A step whose arguments are too many for a generated function."""
    step = plait.jit(lambda xs: [x * 2 for x in xs], donate_argnums=0)
    others = [ones(3) for _ in range(200)]
    if ahead:
        step = step.lower([ones(1000), *others]).compile()

    def run(x):
        y, *others[:] = step([x, *others])
        return y

    return run


STEPS = {
    "one array": lambda: plait.jit(lambda x: x * 2, donate_argnums=0),
    "a tree": lambda: (
        lambda step: lambda x: step({"x": x, "y": ones(3)})["x"]
    )(plait.jit(lambda t: {"x": t["x"] * 2, "y": t["y"]}, donate_argnums=0)),
    "many leaves": lambda: of_many_leaves(False),
    "beside numpy": lambda: (lambda step: lambda x: step(x, np.ones(3, np.float32)))(
        plait.jit(lambda x, y: x * 2 + y.sum() - 3, donate_argnums=0)
    ),
    "an executable": lambda: plait.jit(lambda x: x * 2, donate_argnums=0)
    .lower(ones(1000))
    .compile(),
    "an executable of many leaves": lambda: of_many_leaves(True),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
def test_reading_an_array_does_not_keep_its_memory_from_being_donated(name):
    """Numpy's view of an array is kept for the next reading, but only until it is donated."""
    step, x = STEPS[name](), ones(1000)
    places = set()
    for k in range(6):
        for _ in range(2):
            np.testing.assert_array_equal(np.asarray(x), np.full(1000, 2.0**k))
        places.add(x.unsafe_buffer_pointer())
        before, x = x, step(x)
        for read in (np.asarray, np.sum, lambda x: x.numpy()):
            with pytest.raises(DeletedArrayError, match="donated or deleted"):
                read(before)
    assert len(places) == 1


def test_a_view_that_the_user_keeps_survives_donation():
    step, x = plait.jit(lambda x: x * 2, donate_argnums=0), ones(1000)
    for _ in range(2):
        view = np.asarray(x)
    y = step(x)
    np.testing.assert_array_equal(y, np.full(1000, 2))
    np.testing.assert_array_equal(view, np.ones(1000))
    assert not view.flags.writeable
    with pytest.raises(ValueError, match="WRITEABLE"):
        view.flags.writeable = True


@pytest.mark.skipif(not HAS_NEW_VIEWS, reason="this jaxlib has no view that can be dropped")
@pytest.mark.parametrize("end", ["donated", "deleted"])
def test_memory_that_is_gone_is_not_read_through_a_kept_view(end):
    """Two arrays share it, and the other one was donated or deleted."""
    x = ones(1000)
    for _ in range(2):
        np.asarray(x)
    view = weakref.ref(x.buffer()._npy_value)
    other = wrap(x.buffer(), x.key)
    if end == "donated":
        plait.jit(lambda x: x * 2, donate_argnums=0)(other)
    else:
        other.delete()
    assert view() is None
    for read in (np.asarray, lambda x: x.numpy(), lambda x: x + 1):
        with pytest.raises(DeletedArrayError, match="donated or deleted"):
            read(x)


def test_a_kept_view_of_words_does_not_make_keys_numbers():
    """They share their memory."""
    key = plait.random.key(0)
    words = laid(key)
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(words), [0, 0])
    with pytest.raises(TypeRule, match="not a number"):
        np.asarray(key)


def test_each_reading_has_an_array_of_its_own():
    x = ones(6)
    first = np.asarray(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy 2.5 deprecates it
        first.shape = 2, 3
    assert np.asarray(x).shape == x.numpy().shape == (6,)
