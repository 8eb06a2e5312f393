"""Questions that Python asks of a traced value are answered with words for each of them.

Each program is written as people write it; the words to find are what they should write instead.
"""

import copy
import math
import pickle

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax
from plait.errors import ConcretizationError

X = np.float32([1, 2, 3])


def branch(x, n):
    if x.sum() > 0:
        return x
    return -x


def loop(x, n):
    while x.sum() > 0:
        x = x - 1
    return x


def asserted(x, n):
    assert n > 0
    return x


def both(x, n):
    if (x.sum() > 0) and (n > 1):
        return x
    return -x


def chained(x, n):
    if 0 < n < 3:
        return x
    return -x


def member(x, n):
    return x if n in [1, 2] else -x


def counted(x, n):
    for _ in range(n):
        x = x * 2
    return x


CASES = [
    (branch, ["plait.lax.cond(p, f, g", "plait.numpy.where", "`if`"]),
    (loop, ["plait.lax.while_loop(test, body, start)"]),
    (asserted, ["plait.checks.check(p, message)"]),
    (both, ["p & q, p | q and ~p"]),
    (chained, ["(a < b) & (b < c)"]),
    (member, ["plait.numpy.any(x == "]),
    (counted, ["plait.lax.fori_loop(0, n, body, start)", "static_argnums", "`n`"]),
    (lambda x, n: 1 if n else 2, ["plait.numpy.where(p, a, b) for `a if p else b`", "`n`"]),
    (lambda x, n: not n, ["~p"]),
    (lambda x, n: pnp.zeros(int(n)), ["write n.astype(int)", "static_argnums"]),
    (lambda x, n: float(n), ["write n.astype(float)"]),
    (lambda x, n: pnp.zeros((n, 2)), ["pnp.zeros needs a concrete number", "static"]),
    (lambda x, n: x.reshape(n, 1), ["x.reshape needs a concrete number", "x.shape", "static"]),
    (lambda x, n: pnp.eye(n), ["pnp.eye needs a concrete number", "static"]),
    (lambda x, n: plait.random.split(plait.random.key(0), n), ["plait.random.split needs"]),
    (lambda x, n: plait.nn.one_hot(x.astype(int), n), ["plait.nn.one_hot needs"]),
    (lambda x, n: x.sum(axis=n), ["x.sum needs a concrete number", "axes", "static"]),
    (lambda x, n: lax.top_k(x, n), ["lax.top_k needs a concrete number", "static"]),
    (lambda x, n: lax.scan(lambda c, _: (c, None), x, None, length=n), ["lax.scan needs"]),
    (lambda x, n: pnp.sum(x, keepdims=n), ["pnp.sum needs"]),
    (lambda x, n: [1, 2, 3, 4, 5][n], ["plait.numpy.stack(items)[i]", "plait.lax.switch"]),
    (lambda x, n: f"{n:.2f}", ['plait.debug.print("n = {}", n)']),
    (lambda x, n: max(x[0], x[1]), ["plait.numpy.maximum"]),
    (lambda x, n: sorted([x[0], x[1]]), ["plait.numpy.sort"]),
    (lambda x, n: math.sqrt(n), ["plait.numpy.sqrt", "math.sqrt"]),
    (lambda x, n: np.sin(x), ["plait.numpy.sin", "np.sin", "pure_callback"]),
    (lambda x, n: x.sum().item(), ["outside of the transformed function", "plait.debug.print"]),
    (lambda x, n: x.tolist(), ["outside of the transformed function", "`x`"]),
]


def names(case):
    return getattr(case, "__name__", None) if callable(case) else "-".join(case[:1])[:24]


@pytest.mark.parametrize("transform", [plait.jit, plait.make_jaxpr], ids=["jit", "make_jaxpr"])
@pytest.mark.parametrize(("f", "words"), CASES, ids=names)
def test_the_fix_is_for_this_question(f, words, transform):
    with pytest.raises(ConcretizationError) as e:
        transform(f)(X, 4)
    text = str(e.value)
    assert all(word in text for word in words), text
    line = f.__code__.co_firstlineno
    at = int(text.split("  at ")[1].split("\n")[0].rpartition(":")[2])
    assert line <= at <= line + 3
    assert __file__ in text


@pytest.mark.parametrize("send", [copy.copy, lambda e: pickle.loads(pickle.dumps(e))])
def test_errors_go_to_other_processes(send):
    with pytest.raises(ConcretizationError) as e:
        plait.jit(counted)(X, 4)
    there = send(e.value)  # before the message is read
    assert type(there) is ConcretizationError
    assert str(there) == str(e.value)
    assert "plait.lax.fori_loop" in there.fix


def test_the_branch_is_found_through_a_transformation_within():
    def f(x):
        return plait.jit(lambda a: a if a.sum() > 0 else -a)(x)

    with pytest.raises(ConcretizationError, match="plait.numpy.where\\(p, a, b\\) for"):
        plait.jit(f)(X)


def test_numpy_and_scipy_are_not_the_users_lines():
    def f(x):
        return np.mean(x, axis=0) + np.linalg.norm(x)

    with pytest.raises(ConcretizationError) as e:
        plait.jit(f)(X)
    assert f"at {__file__}" in str(e.value)


def test_without_a_source_the_method_decides():
    space: dict = {}
    exec("def f(x, n):\n    return x if n > 1 else -x\n", space)
    with pytest.raises(ConcretizationError, match="plait.lax.cond, plait.lax.while_loop or"):
        plait.jit(space["f"])(X, 4)


def test_sources_are_read_only_for_messages(monkeypatch):
    """Plait asks such questions itself, and catches the errors."""
    import linecache

    monkeypatch.setattr(linecache, "getlines", lambda *_: pytest.fail("a source was read"))

    def caught(x, n):
        try:
            return x if n > 1 else -x
        except ConcretizationError:
            return x

    np.testing.assert_array_equal(plait.jit(caught)(X, 4), X)
    loop = plait.jit(lambda x, n: lax.fori_loop(0, n, lambda _, c: c * 2, x))
    np.testing.assert_array_equal(loop(X, 2), X * 4)


def test_formats():
    x = plait.numpy.asarray(np.float32(1.5))
    assert f"{x:.2f}" == "1.50"

    def f(x):
        texts.append(f"{x}")
        return x

    texts: list = []
    plait.jit(f)(x)
    assert "f32[]" in texts[0]
