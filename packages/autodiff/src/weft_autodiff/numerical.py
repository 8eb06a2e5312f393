"""Derivatives checked against finite differences.

Invariant: the reference is computed with numpy arithmetic on values of the function alone.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.errors import TypeRule
from weft.tree import flatten
from weft.values import as_value

from .api import jvp, vjp


def _arrays(tree_: Any) -> list[np.ndarray]:
    return [np.asarray(as_value(x)) for x in flatten(tree_)[0]]


def _like(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    y = rng.standard_normal(x.shape)
    if x.dtype.kind == "c":
        y = y + 1j * rng.standard_normal(x.shape)
    return y.astype(x.dtype)


def _difference(f: Callable, xs: list, ts: list, eps: float) -> list[np.ndarray]:
    """Fourth-order central difference of `f` at xs along ts."""
    at = lambda h: f([(x + h * t).astype(x.dtype) for x, t in zip(xs, ts)])  # noqa: E731
    near = [a - b for a, b in zip(at(eps), at(-eps))]
    far = [a - b for a, b in zip(at(2 * eps), at(-2 * eps))]
    return [(8 * n - m) / (12 * eps) for n, m in zip(near, far)]


def check_grads(
    f: Callable,
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Compare derivatives of `f` at `args` with finite differences, up to an order.

    Args:
      f: takes trees of real or complex arrays, returns such a tree.
      args: where, a tuple of arguments.
      order: 1 checks derivatives, 2 derivatives of derivatives too, ...
      modes: "fwd" (jvp), "rev" (vjp), or both.
      atol, rtol: tolerances; by default for the narrowest dtype among the arguments.
      eps: the step of the differences.

    Raises AssertionError if they disagree.

    >>> import weft as wf
    >>> wf.check_grads(wf.lax.sin, (wf.numpy.array([0.1, 0.2]),), order=2)
    """
    args = tuple(args)
    leaves, tree = flatten(args)
    xs = [np.asarray(as_value(x)) for x in leaves]
    if not all(x.dtype.kind in "fc" for x in xs):
        raise TypeRule("check_grads is for real and complex arguments", fix="close over the others")
    wide = all(x.dtype in (np.float64, np.complex128) for x in xs)
    atol = atol if atol is not None else 1e-6 if wide else 2e-2
    rtol = rtol if rtol is not None else 1e-6 if wide else 2e-2
    eps = eps if eps is not None else 1e-3 if wide else 1e-2
    rng = np.random.default_rng(0)
    flat = lambda values: _arrays(f(*tree.unflatten(values)))  # noqa: E731
    ts = [_like(rng, x) for x in xs]
    expected = _difference(flat, xs, ts, eps)
    close = lambda a, b, what: np.testing.assert_allclose(  # noqa: E731
        a, b, rtol=rtol, atol=atol, err_msg=what
    )
    for mode in modes:
        if mode == "fwd":
            got = _arrays(jvp(f, args, tree.unflatten(ts))[1])
            for a, b in zip(got, expected, strict=True):
                close(a, b, "forward mode against finite differences")
        else:
            out, pull = vjp(f, *args)
            outs, out_tree = flatten(out)
            cts = [_like(rng, np.asarray(as_value(o))) for o in outs]
            got = _arrays(pull(out_tree.unflatten(cts)))
            left = sum(np.sum(g * t) for g, t in zip(got, ts)).real
            right = sum(np.sum(c * e) for c, e in zip(cts, expected)).real
            close(left, right, "reverse mode against finite differences")
    if order > 1:
        tangent = tree.unflatten(ts)
        for mode in modes:
            if mode == "fwd":
                derivative: Callable = lambda *xs: jvp(f, xs, tangent)[1]  # noqa: E731
            else:
                cts_tree = vjp(f, *args)[0]
                outs, out_tree = flatten(cts_tree)
                fixed = out_tree.unflatten([_like(rng, np.asarray(as_value(o))) for o in outs])
                derivative = lambda *xs, c=fixed: vjp(f, *xs)[1](c)  # noqa: E731
            check_grads(derivative, args, order - 1, modes, atol * 10, rtol * 10, eps)
