"""Checks of kinds that `checkify` does not look for, with `others="drop"`.

The programs hold a check that fails, in every operation of the core that has programs.  What is
expected is computed by the same function of numpy or Python, which has no checks.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax
from plait.checks import (
    all_checks,
    check,
    check_error,
    checkify,
    div_checks,
    init_error,
    nan_checks,
    user_checks,
)


def unwanted(x):
    check(x.sum() < -1e6, "x is {}", x)
    return x * 2


def in_error(x):
    error, y = checkify(lambda v: (check(v.sum() < -1e6, "no"), v * 2)[1])(x)
    check_error(error)
    return y


def in_loop(x):
    return lax.while_loop(lambda v: (unwanted(v), v.sum() < 20)[1], unwanted, x)


def steps(x, n):
    while x.sum() < n:
        x = x * 2
    return x


NESTED = {
    "plain": (unwanted, lambda x: x * 2),
    "jit": (plait.jit(unwanted), lambda x: x * 2),
    "jit of jit": (plait.jit(lambda x: plait.jit(unwanted)(x) + 1), lambda x: x * 2 + 1),
    "one branch": (lambda x: lax.cond(x.sum() > 0, unwanted, lambda v: v, x), lambda x: x * 2),
    "both branches": (
        lambda x: lax.cond(x.sum() > 0, unwanted, lambda v: unwanted(v) + 1, x),
        lambda x: x * 2,
    ),
    "scan": (
        lambda x: lax.scan(lambda c, v: (unwanted(c), v), x, pnp.arange(3))[0],
        lambda x: x * 8,
    ),
    "while": (in_loop, lambda x: steps(x, 20)),
    "for": (lambda x: lax.fori_loop(0, 2, lambda i, v: unwanted(v), x), lambda x: x * 4),
    "an error": (in_error, lambda x: x * 2),
}


@pytest.mark.parametrize("name", NESTED)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_checks_of_other_kinds_are_dropped(name, compiled):
    f, wanted = NESTED[name]
    checked = checkify(f, div_checks, others="drop")
    error, y = (plait.jit(checked) if compiled else checked)(np.array([1.0, 2.0], np.float32))
    assert error.get() is None
    np.testing.assert_array_equal(y, wanted(np.array([1.0, 2.0], np.float32)))


@pytest.mark.parametrize("name", NESTED)
def test_checks_of_other_kinds_stay_by_default(name):
    with pytest.raises(plait.errors.PlaitError):
        plait.jit(checkify(NESTED[name][0], div_checks))(np.ones(2, np.float32))


@pytest.mark.parametrize("name", NESTED)
def test_a_kind_that_is_looked_for_is_found_behind_a_dropped_check(name):
    f, _ = NESTED[name]
    checked = checkify(lambda x: f(x) / (x - x), div_checks, others="drop")
    assert "zero" in plait.jit(checked)(np.ones(2, np.float32))[0].get()


def test_a_kind_that_is_looked_for_is_not_dropped():
    for kinds in (user_checks, all_checks):
        error, _ = checkify(unwanted, kinds, others="drop")(np.ones(2, np.float32))
        assert error.get().startswith("x is")


def test_an_error_of_another_kind_is_dropped_and_its_own_kind_kept():
    divided, _ = checkify(lambda x: 1 / x, div_checks)(0.0)
    assert divided.get() is not None

    def f(x):
        check_error(divided)
        return x

    assert checkify(f, nan_checks, others="drop")(1.0)[0].get() is None
    assert checkify(f, div_checks, others="drop")(1.0)[0].get() == divided.get()
    assert checkify(lambda x: check_error(init_error), others="drop")(1.0)[0].get() is None


def test_a_dropped_check_of_an_outer_checkify_is_not_collected():
    inner = checkify(unwanted, nan_checks, others="drop")
    error, (within, _) = checkify(inner, user_checks)(np.ones(2, np.float32))
    assert error.get() is None and within.get() is None


def test_another_word_is_refused():
    with pytest.raises(plait.errors.ArgumentError, match='write others="keep" or others="drop"'):
        checkify(unwanted, others="lose")
