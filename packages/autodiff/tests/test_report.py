"""saved_residuals: what reverse mode keeps, where it comes from, and how large it is.

Invariant: what is listed is compared with what the function says, and with what a pullback holds.
"""

import re

import numpy as np
import pytest

import plait
from plait import lax
from plait_autodiff import Residual

pnp, keep = plait.numpy, plait.checkpoint_policies
rng = np.random.default_rng(0)


def block(x, w):
    unused = lax.exp(x)  # its derivative would keep exp(x)
    h = lax.sin(x @ w["a"])
    return lax.sin(h) + w["b"] + 0 * unused.shape[0]


@pytest.mark.feature("A24")
def test_residuals_are_listed(capsys):
    x, w = np.ones((2, 3), np.float32), {"a": np.ones((3, 3), np.float32), "b": np.float32(1)}
    found = plait.saved_residuals(block, x, w)
    assert [r.what for r in found] == [
        "the argument w['a']", "the argument x", "result of core.cos", "result of core.cos",
    ]  # fmt: skip
    assert all(isinstance(r, Residual) for r in found)
    line = block.__code__.co_firstlineno + 2
    assert found[2].where == f"{__file__}:{line} (block)"
    assert [r.bytes for r in found] == [36, 24, 24, 24]
    again = plait.saved_residuals(plait.jit(plait.checkpoint(plait.jit(block))), x, w)
    assert {r.what for r in again} == {"the argument w['a']", "the argument x"}
    plait.print_saved_residuals(plait.checkpoint(block, policy=keep.dots_saveable), x, w=w)
    lines = capsys.readouterr().out.splitlines()
    first = r"f32\[2,3\] +24 B  result of core\.dot_general at .*:\d+ \(block\)"
    assert re.fullmatch(first, lines[0])
    assert re.fullmatch(r"in all +84 B", lines[-1])
    (n,) = plait.symbolic_dims("n")
    plait.print_saved_residuals(lax.sin, plait.ShapeDtypeStruct((n, 3), np.float32))
    assert "12*n B" in capsys.readouterr().out
    held = pnp.asarray(x)
    assert [r.what for r in plait.saved_residuals(lambda v: v * held, x)] == ["a constant"]


@pytest.mark.feature("A24")
def test_the_pullback_holds_what_is_listed():
    x = pnp.asarray(rng.standard_normal((4, 4)).astype(np.float32))

    def f(x):
        _ = lax.exp(x) * x  # nothing of which is kept
        return lax.sin(lax.sin(x @ x)).sum()

    for policy in (None, keep.nothing_saveable, keep.dots_saveable, keep.everything_saveable):
        g = f if policy is None else plait.checkpoint(f, policy=policy)
        _, pull = plait.vjp(g, x)
        held = plait.make_program(pull)(np.float32(1)).constants.values()
        total = sum(c.size * 4 for c in held if c.shape)
        assert total == sum(r.bytes for r in plait.saved_residuals(g, x) if r.aval.shape)


@pytest.mark.parametrize("wrap", [lambda f: f, plait.checkpoint], ids=["plain", "checkpoint"])
def test_what_is_the_same_in_every_turn_is_kept_once(wrap):
    """Of a loop that raises a constant to a power in each turn, the power is not stacked."""
    w, rows = np.linspace(0.1, 0.5, 5), np.ones(7)

    def step(w, c, x):
        return lax.sin(c) * plait.checkpoint_name(lax.exp(w), "e") + x, None

    def f(w, c):
        loop = lambda w, c: lax.scan(lambda c, x: step(w, c, x), c, rows)[0].sum()  # noqa: E731
        return (loop if wrap is not plait.checkpoint else wrap(loop, policy=named))(w, c)

    named = keep.save_only_these_names("e")
    shapes = {r.what: r.aval.shape for r in plait.saved_residuals(f, w, w)}
    assert shapes["result of core.exp" if wrap is not plait.checkpoint else "named 'e'"] == (5,)

    def np_f(w, c):
        for x in rows:
            c = np.sin(c) * np.exp(w) + x
        return c

    h = 1e-6
    got = plait.jit(plait.grad(f, (0, 1)))(w, w)
    np.testing.assert_allclose(got[0], (np_f(w + h, w) - np_f(w - h, w)) / (2 * h), rtol=1e-7)
    np.testing.assert_allclose(got[1], (np_f(w, w + h) - np_f(w, w - h)) / (2 * h), rtol=1e-7)
