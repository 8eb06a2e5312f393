"""check_grads: derivatives checked against finite differences.

Invariant: the reference uses numpy arithmetic on values of the function, and no derivative rule.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plait.ext.errors import ArgumentError, OperandTypeError, border
from plait.ext.trace import Value
from plait.ext.tree import flatten
from plait.ext.types import float0
from plait.ext.values import as_value

from .adable import adables, beside_numbers, is_adable
from .api import jvp, vjp
from .tangents import expect_function


def _arrays(tree_: object) -> list[np.ndarray]:
    """Return the numbers of a tree; integers have no derivatives, and these are left out."""
    leaves = [x for x in flatten(adables.opened(tree_))[0] if getattr(x, "dtype", None) != float0]
    return [np.asarray(as_value(x)) for x in leaves]


def _defined(tree_: Value | tuple[Any, ...]) -> Any:
    """Return the tree with zeros for undefined numbers, which values of adable classes may hold."""
    leaves, kind = flatten(tree_, is_adable)
    return kind.unflatten([x.__defined__() if hasattr(x, "__defined__") else x for x in leaves])


def _like(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    y = rng.standard_normal(x.shape)
    if x.dtype.kind == "c":
        y = y + 1j * rng.standard_normal(x.shape)
    return y.astype(x.dtype)


def _difference(f: Callable, xs: list, ts: list, eps: float) -> list[np.ndarray]:
    """Return the fourth-order central difference of `f` at xs along ts."""
    at = lambda h: f([(x + h * t).astype(x.dtype) for x, t in zip(xs, ts)])  # noqa: E731
    near = [a - b for a, b in zip(at(eps), at(-eps))]
    far = [a - b for a, b in zip(at(2 * eps), at(-2 * eps))]
    return [(8 * n - m) / (12 * eps) for n, m in zip(near, far)]


@border
def check_grads(
    f: Callable,
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Compare derivatives of `f` at `args` with finite differences, up to the given order.

    Args:
      f: takes trees of real or complex arrays, and returns such a tree.
      args: the point of comparison, a tuple of arguments.
      order: 1 checks derivatives, 2 also derivatives of derivatives, ...
      modes: "fwd" (jvp), "rev" (vjp), or both, in a tuple.
      atol, rtol: tolerances; by default for the narrowest dtype among the arguments.
      eps: the step of the differences.

    Raises AssertionError if they disagree, TypeRule for arguments that cannot be checked.

    >>> import plait
    >>> plait.check_grads(plait.lax.sin, (plait.numpy.array([0.1, 0.2]),), order=2)
    """
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    _expect(f, args, order, modes)
    function = f
    f = lambda *xs: _defined(function(*xs))  # noqa: E731
    args = tuple(args)
    fixed = beside_numbers(args)
    leaves, tree = flatten(adables.opened(args))
    xs = [np.asarray(as_value(x)) for i, x in enumerate(leaves) if i not in fixed]
    if not all(x.dtype.kind in "fc" for x in xs):
        raise OperandTypeError(
            "check_grads is for real and complex arguments", fix="close over the others"
        )
    wide = all(x.dtype in (np.float64, np.complex128) for x in xs)
    atol = atol if atol is not None else 1e-6 if wide else 2e-2
    rtol = rtol if rtol is not None else 1e-6 if wide else 2e-2
    eps = eps if eps is not None else 1e-3 if wide else 1e-2
    rng = np.random.default_rng(0)

    def whole(values: Sequence[Any], others: Sequence[Any]) -> Any:
        given = iter(values)
        n = range(len(leaves))
        return tree.unflatten([others[i] if i in fixed else next(given) for i in n])

    still = [np.zeros(np.shape(as_value(x)), float0) if i in fixed else None
             for i, x in enumerate(leaves)]  # fmt: skip
    flat = lambda values: _arrays(f(*whole(values, leaves)))  # noqa: E731
    ts = [_like(rng, x) for x in xs]
    tangent = _defined(whole(ts, still))
    ts = _arrays(tangent)
    expected = _difference(flat, xs, ts, eps)
    close = lambda a, b, what: np.testing.assert_allclose(  # noqa: E731
        a, b, rtol=rtol, atol=atol, err_msg=f"{what} mode against finite differences"
    )
    for mode in modes:
        if mode == "fwd":
            derivative: Callable = lambda *xs: jvp(f, xs, tangent)[1]  # noqa: E731
            for a, b in zip(_arrays(derivative(*args)), expected, strict=True):
                close(a, b, "forward")
        else:
            out, pull = vjp(f, *args)
            ct = _cotangent(rng, out)
            derivative = lambda *xs, c=_cotangent(rng, out): vjp(f, *xs)[1](c)  # noqa: E731
            close(_paired(_arrays(pull(ct)), ts), _paired(_arrays(ct), expected), "reverse")
        if order > 1:
            check_grads(derivative, args, order - 1, modes, atol * 10, rtol * 10, eps)


def _expect(f: object, args: Any, order: int | str, modes: Sequence[Any]) -> None:
    expect_function(f, "check_grads")
    if not isinstance(args, tuple | list):
        raise ArgumentError(
            f"check_grads takes a tuple of arguments, not {type(args).__name__}",
            fix="write check_grads(f, (x,), order=1)",
        )
    if not isinstance(order, int) or order < 1:
        raise ArgumentError(f"check_grads up to order {order!r}", fix="give 1 or more, as an int")
    if not modes or any(m not in ("fwd", "rev") for m in modes):
        raise ArgumentError(f"check_grads in modes {modes!r}", fix='use "fwd", "rev", or both')


def _cotangent(rng: np.random.Generator, out: Value | tuple[Value, ...]) -> Any:
    """Return a random tree like the results."""
    outs, tree = flatten(adables.opened(out))
    return tree.unflatten([o if getattr(o, "dtype", None) == float0
                           else _like(rng, np.asarray(as_value(o))) for o in outs])  # fmt: skip


def _paired(cts: Sequence[Any], ts: Sequence[Any]) -> Any:
    """Return the real part of the sum of products of cotangents and tangents."""
    return sum(np.sum(c * t) for c, t in zip(cts, ts, strict=True)).real
