"""plait.debug: what happens, how often, in which order.

Invariant: effects are counted by what Python saw.
"""

from pathlib import Path

import numpy as np
import pytest

import plait
import plait.numpy as pnp


def test_callback_sees_trees_of_values():
    seen = []

    def f(x):
        plait.debug.callback(lambda a, *, b: seen.append((a["k"], b)), {"k": x}, b=x + 1)
        return x

    f = plait.jit(f)
    assert float(f(2.0)) == 2.0
    ((a, b),) = seen
    assert isinstance(a, np.ndarray) and float(a) == 2.0 and float(b) == 3.0
    f(5.0)
    assert [float(a) for a, _ in seen] == [2.0, 5.0]


def test_ordered_callbacks_keep_their_order():
    seen = []

    def body(i, s):
        plait.debug.callback(lambda i: seen.append(int(i)), i, ordered=True)
        return s

    plait.jit(lambda: plait.lax.fori_loop(0, 5, body, 0.0))()
    assert seen == [0, 1, 2, 3, 4]


def test_print(capsys):
    plait.debug.print("now {}", np.float32(1.5))
    plait.jit(lambda x: plait.debug.print("x={x:.2f} {}", x * 2, x=x))(1.0)
    assert capsys.readouterr().out == "now 1.5\nx=1.00 2.0\n"


def line_of(text):
    """The number of the line of this file that has the text."""
    lines = Path(__file__).read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if text in line)


def test_print_without_a_format(capsys):
    say = plait.debug.print(ordered=True)
    plait.jit(lambda x: (say("a {}", x), say("b {}", x)))(1)
    plait.effects_barrier()
    assert capsys.readouterr().out == "a 1\nb 1\n"


def test_nans_are_found_where_they_are_made():
    jnp, lax = plait.numpy, plait.lax

    def root(x):
        return jnp.sqrt(x)  # made here

    turn = lambda s: (s[0] + 1, root(s[1] - 1))
    cases = [
        lambda: root(-1.0),
        lambda: plait.jit(lambda x: plait.jit(root)(x) + 1)(-1.0),
        lambda: plait.jit(lambda x: lax.scan(lambda c, _: (c - 1, root(c)), x, None, 4)[1])(1.0),
        lambda: lax.while_loop(lambda s: s[0] < 4, turn, (0, 1.5)),
        lambda: lax.while_loop(lambda s: s[0] < 4, turn, (0, 1.5), max_steps=9),
        lambda: lax.cond(True, root, lambda x: x, -1.0),
        lambda: plait.jit(lambda x: lax.cond(x < 0, root, lambda x: x, x))(-1.0),
    ]
    for case in cases:
        with pytest.raises(plait.errors.NanError, match="core.sqrt gave nan") as error:
            with plait.debug.nans():
                case()
        assert f"test_debug.py:{line_of('made' + ' here')}" in str(error.value)
        case()  # outside it is no error


def test_nans_that_were_given_are_no_error():
    x = np.float32([np.nan, 1.0])
    with plait.debug.nans():
        y = plait.jit(lambda v: plait.numpy.where(plait.numpy.isnan(v), 0, v) + 1)(x)
        z = plait.numpy.sin(x)
        n = plait.numpy.arange(3) // 2
    assert np.asarray(y).tolist() == [1, 2] and np.isnan(np.asarray(z)[0]) and n.shape == (3,)


@pytest.mark.parametrize("way", [lambda f: f, plait.jit], ids=["eager", "jit"])
def test_objects_that_are_not_arrays_come_as_they_are(way, capsys):
    """Names, functions and other objects beside arrays, in their places in trees."""
    seen, thing = [], object()

    def f(x):
        plait.debug.callback(
            lambda a, *, b: seen.append((a, b)), {"at": "here", "x": x}, b=[thing, x + 1, print]
        )
        plait.debug.print("{name}: {}", x, name="loss")
        return x

    way(f)(2.0)
    ((a, b),) = seen
    assert a["at"] == "here" and float(a["x"]) == 2
    assert b[0] is thing and float(b[1]) == 3 and b[2] is print
    assert capsys.readouterr().out == "loss: 2.0\n"


def test_only_objects():
    """A callback without arrays happens as often as the program is run."""
    seen = []
    f = plait.jit(lambda x: (plait.debug.callback(seen.append, "now"), x)[1])
    f(1.0)
    f(2.0)
    assert seen == ["now", "now"]


def test_traced_values_that_left_their_function_are_refused():
    """They are not objects to be passed on."""
    left = []
    plait.jit(lambda x: left.append(x) or x)(1.0)
    with pytest.raises(plait.errors.UnexpectedTracerError):
        plait.debug.print("{}", left[0])


@pytest.mark.parametrize("donated", [None, 0])
@pytest.mark.parametrize("watch", ["nans", "infs"])
def test_executables_are_watched(watch, donated):
    """The results of `lower(...).compile()`, as those of the jitted function; operands that have
    one already are not blamed on the program."""
    f, bad = {
        "nans": (lambda x: {"a": pnp.log(x) + 1, "b": x}, -1.0),
        "infs": (lambda x: {"a": 1 / x, "b": x}, 0.0),
    }[watch]
    compiled = plait.jit(f, donate_argnums=donated).lower(pnp.ones(2)).compile()
    worst = {"nans": np.nan, "infs": np.inf}[watch]
    with getattr(plait.debug, watch)():
        np.testing.assert_array_equal(compiled(pnp.ones(2))["b"], [1, 1])
        with pytest.raises(FloatingPointError, match="core.(log|div) gave") as e:
            compiled(pnp.full(2, bad))
        assert "test_debug.py" in str(e.value)
        assert not np.isfinite(compiled(pnp.full(2, worst))["b"]).any()
    compiled(pnp.full(2, bad))  # outside of the block nans are not looked for


def test_executables_with_captured_values_are_watched():
    kept = pnp.full(2, -1.0)
    compiled = plait.jit(lambda x: x * pnp.sqrt(kept)).lower(1.0).compile()
    with plait.debug.nans(), pytest.raises(FloatingPointError, match="core.sqrt gave nan"):
        compiled(1.0)
