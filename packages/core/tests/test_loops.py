"""Loops: how often they are traced, what carries become, empty ones, mistakes.

Invariant: the references are Python's loops.
"""

import numpy as np
import pytest

import plait
from plait import lax
from plait.ext.errors import AxisError, TypeRule

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


# ---- weak carries ----------------------------------------------------------------------------


def test_python_numbers_as_carries():
    """A carry that starts as a Python number takes the dtype that the step gives it."""
    assert lax.scan(lambda c, _: (c + 0.5, None), 0, None, length=4)[0].item() == 2
    out = lax.while_loop(lambda s: s[1] < 4, lambda s: (s[0] + 0.5, s[1] + 1), (0, 0))
    assert [o.item() for o in out] == [2, 4]
    assert lax.fori_loop(0, 4, lambda i, c: c + 0.5, 0).item() == 2
    wide = pnp.asarray(np.array([1.0, 2.0]))
    out, _ = lax.scan(lambda c, x: (c + x, None), 0.0, wide)
    assert out.dtype == np.float64 and out.item() == 3
    out = lax.while_loop(lambda s: s[0] < 3.0, lambda s: (s[0] + wide[0], s[1] + 1), (0.0, 0))
    assert out[0].dtype == np.float64 and [o.item() for o in out] == [3, 3]


def test_strong_carries_are_not_cut_down():
    """A strong carry whose step gives a wider kind is an error, not truncated."""
    with pytest.raises(TypeRule, match="must keep its type"):
        lax.scan(lambda c, _: (c * 0.5, None), pnp.asarray(np.int32(7)), None, length=1)
    with pytest.raises(TypeRule, match="must keep its type"):
        lax.while_loop(lambda c: c < 9, lambda c: c * 1.5, pnp.asarray(np.int32(7)))


def test_carries_that_settle_one_after_the_other():
    """A dtype that reaches one carry through another."""
    x = pnp.asarray(np.array([1.0, 2.0]))
    a, b = lax.scan(lambda c, x: ((c[1], x), None), (0.0, 0.0), x)[0]
    assert (a.dtype, b.dtype) == (np.float64, np.float64)
    assert (a.item(), b.item()) == (1, 2)
    a, b, c = lax.scan(lambda s, x: ((s[1], s[2], x), None), (0, 0, 0), x)[0]
    assert [v.item() for v in (a, b, c)] == [0, 1, 2]
    assert a.dtype == b.dtype == c.dtype == np.float64


# ---- how often Python runs -------------------------------------------------------------------


def test_traces_of_a_while_loop():
    """The body of a while_loop with Python numbers as carry, closing over a traced value."""
    for init in ((0, 1.0), (pnp.asarray(np.int32(0)), f32(1))):
        count = [0]

        def f(k, init=init, count=count):
            def body(s):
                count[0] += 1
                return s[0] + 1, s[1] * k

            return lax.while_loop(lambda s: s[0] < 3, body, init)[1]

        plait.make_program(f)(f32(1))
        assert count[0] == 1
        np.testing.assert_allclose(plait.jit(f)(f32(2)), 8)


# ---- loops of no turns -----------------------------------------------------------------------


def test_empty_scan():
    """A scan over nothing returns its first carry and nothing stacked."""
    none = f32(np.zeros((0,)))
    for wrap in (lambda f: f, plait.jit):
        c, ys = wrap(lambda c: lax.scan(lambda c, r: (c + r, c), c, none))(f32(3))
        assert c.item() == 3 and ys.shape == (0,)
        c, ys = wrap(lambda c: lax.scan(lambda c, _: (c * 2, c[None]), c, None, length=0))(f32(3))
        assert c.item() == 3 and ys.shape == (0, 1)


# ---- mistakes --------------------------------------------------------------------------------


def test_scans_of_more_turns_than_32_bits_count():
    count, total = 2**31 + 5, np.int64(0)
    got = lax.scan(lambda c, _: (c + np.int64(1), None), total, None, length=count)[0]
    assert int(got) == count


def test_lengths():
    """A scan that knows no length, or two."""
    step = lambda c, r: (c, c)  # noqa: E731
    with pytest.raises(AxisError, match="neither xs nor length"):
        lax.scan(step, f32(0), None)
    with pytest.raises(AxisError, match="differ"):
        lax.scan(step, f32(0), (f32([1]), f32([1, 2])))
    with pytest.raises(AxisError, match="differ"):
        lax.scan(step, f32(0), f32([1, 2]), length=3)
    with pytest.raises(AxisError, match="rows"):
        lax.scan(step, f32(0), f32(1))


def scans(f, init):
    return lax.scan(lambda c, _: (f(c), None), init, None, length=2)


def counts(f, init):
    return lax.fori_loop(0, 2, lambda i, c: f(c), init)


def whiles(f, init):
    return lax.while_loop(lambda c: False, f, init)


@pytest.mark.parametrize("loop", [scans, counts, whiles])
@pytest.mark.parametrize(
    "wrong",
    [
        lambda c: 7.0,
        lambda c: np.float32(7),
        lambda c: pnp.zeros((2,), "int32"),
        lambda c: np.zeros((2,), np.int32),
        lambda c: c + 0.5,
    ],
    ids=["number", "scalar of numpy", "zeros", "array of numpy", "computed"],
)
@pytest.mark.parametrize("nested", [False, True])
def test_results_of_another_type_are_refused(loop, wrong, nested):
    """However a step came by the result: computed, or a constant that no line computed."""
    init = pnp.asarray(np.int32(3))
    step = (lambda c: (c[0], wrong(c[1]))) if nested else wrong
    with pytest.raises(TypeRule, match="must keep its type.*comes in as i32") as e:
        loop(step, (init, init) if nested else init)
    assert e.value.fix and __file__.rpartition("/")[0] in e.value.where


@pytest.mark.parametrize(
    "call",
    [
        lambda f: lax.scan(f, 0, 1),
        lambda f: lax.scan(f, 0, None),
        lambda f: lax.while_loop(f, f, object()),
        lambda f: lax.fori_loop("no bound", 2, f, 0),
        lambda f: lax.map(f, 1),
    ],
)
def test_a_step_that_cannot_be_called_is_named_first(call):
    """Also where the other arguments are wrong."""
    with pytest.raises(TypeError, match="42 is not a function"):
        call(42)
