"""Named values come out of, and go into, functions under every transformation."""

import numpy as np
import pytest
from plait_harvest import plant, reap, sow

import plait
import plait.numpy as pnp
from plait import Pile, lax, pile_axis

X = np.float32([0.1, 0.4, 0.3, 0.2])
H = np.float32([1.0, 2.0, 3.0, 4.0])


def body(x):
    return sow(pnp.tanh(x), "h") * 2.0


def close(got, want):
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5)


ONCE = {
    "plain": body,
    "jit": plait.jit(body),
    "checkpoint": plait.checkpoint(body),
    "cond": lambda x: lax.cond(x[0] < 1, body, lambda y: sow(y, "h"), x),
    "vmap": plait.vmap(body),
    "jvp": lambda x: plait.jvp(body, (x,), (x,))[0],
}


@pytest.mark.parametrize("way", [lambda f: f, plait.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", ONCE)
def test_a_value_has_a_name(name, way):
    y, found = way(reap(ONCE[name]))(X)
    close(y, 2 * np.tanh(X))
    close(found["h"], np.tanh(X))
    close(way(plant(ONCE[name], {"h": H}))(X), 2 * H if name != "cond" else 2 * H)


def test_turns_of_a_scan_have_rows():
    f = lambda x: lax.scan(lambda c, _: (body(c), None), x, None, 3)[0]  # noqa: E731
    want, x = [], X
    for _ in range(3):
        want.append(np.tanh(x))
        x = 2 * want[-1]
    y, found = plait.jit(reap(f))(X)
    close(y, x)
    close(found["h"], np.stack(want))
    close(plant(f, {"h": np.stack([X, X, H])})(X), 2 * H)


def test_examples_and_devices_have_rows(rows):
    mesh, cut = rows
    sums = lambda v: sow(v.sum(), "s") * v  # noqa: E731
    x = np.arange(16, dtype=np.float32)
    f = plait.shard_map(sums, mesh=mesh, in_specs=cut, out_specs=cut)
    close(reap(f)(x)[1]["s"], x.reshape(8, 2).sum(1))
    g = lambda x: plait.vmap(sums, pile_axis, pile_axis)(Pile(x, np.array([3, 1]))).data  # noqa: E731
    for way in (lambda f: f, plait.jit):
        close(way(reap(g))(X)[1]["s"], [X[:3].sum(), X[3]])


def test_derivatives_with_respect_to_a_value_inside():
    loss = lambda x: (body(x) ** 2).sum()  # noqa: E731
    close(plait.grad(lambda h: plant(loss, {"h": h})(X))(H), 8 * H)
    value, found = reap(plait.grad(loss))(X)
    close(value, 8 * np.tanh(X) / np.cosh(X) ** 2)
    close(found["h"], np.tanh(X))


def test_functions_that_sow_are_functions():
    """Nothing of the names is left where no value is reaped, in a file for instance."""
    file = plait.export.export(plait.jit(plait.grad(lambda x: body(x).sum())))(X).serialize()
    close(plait.export.deserialize(file).call(X), 2 / np.cosh(X) ** 2)
    file = plait.export.export(plait.jit(reap(body)))(X).serialize()
    close(plait.export.deserialize(file).call(X)[1]["h"], np.tanh(X))


def test_tags_are_apart():
    f = lambda x: sow(x, "a", tag="one") + sow(2 * x, "a", tag="two")  # noqa: E731
    close(reap(f, tag="two")(X)[1]["a"], 2 * X)
    assert [*reap(reap(f, tag="one"), tag="two")(X)[1]] == ["a"]


def test_wrong_input(told):
    told(lambda: reap(lambda x: body(body(x)))(X), "two values are named 'h'")
    told(lambda: plant(body, {"g": H})(X), "nothing is sown under 'g'")
    told(lambda: plant(body, {"h": H[:2]})(X), "(4,)", "(2,)")
    turning = lambda x: lax.while_loop(lambda y: y[0] < 5, lambda y: body(y) + 1, x)  # noqa: E731
    told(lambda: plant(turning, {"h": H})(X), "['h']", "lax.scan")
    told(lambda: reap(lambda x: lax.cond(x[0] > 0, body, lambda y: y, x))(X), "'h'")
