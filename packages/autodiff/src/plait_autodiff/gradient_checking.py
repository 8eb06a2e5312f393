"""check_grads, check_jvp, check_vjp: derivatives checked against finite differences.

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


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _difference(f: Callable, xs: list, ts: list, eps: float) -> list[np.ndarray]:
    """Return the fourth-order central difference of `f` at xs along ts, in double precision.

    Equal values differ by zero, infinite ones too: a result that stays infinite is constant.
    """

    def at(h: float) -> list[np.ndarray]:
        return f([(_wide(x) + h * _wide(t)).astype(x.dtype) for x, t in zip(xs, ts)])

    def apart(h: float) -> list[np.ndarray]:
        pairs = [(_wide(a), _wide(b)) for a, b in zip(at(h), at(-h))]
        return [np.subtract(a, b, out=np.zeros_like(a), where=a != b) for a, b in pairs]

    with np.errstate(invalid="ignore"):  # infinite on one side: nan
        return [(8 * n - m) / (12 * eps) for n, m in zip(apart(eps), apart(2 * eps))]


class _Point:
    """Arguments, a random tangent of theirs, and the finite difference of `f` along it.

    Raises OperandTypeError for integers among the arguments, unless they belong to an adable value.
    """

    def __init__(self, f: Callable, args: tuple, who: str, eps: float | None, tols: tuple):
        self.rng = np.random.default_rng(0)
        fixed = beside_numbers(args)
        leaves, self.tree = flatten(adables.opened(args))
        values = [as_value(x) for x in leaves]
        moving = [v for i, v in enumerate(values) if i not in fixed]
        if not all(v.aval.varies for v in moving):
            raise OperandTypeError(
                f"{who} is for real and complex arguments", fix="close over the others"
            )
        xs = [np.asarray(v) for v in moving]
        bits = min([x.dtype.itemsize // (1 + (x.dtype.kind == "c")) for x in xs], default=8)
        tol, step = (1e-6, 1e-3) if bits > 4 else (2e-2, 1e-2) if bits > 2 else (1e-1, 0.25)
        self.atol, self.rtol = (tol if t is None else t for t in tols)
        self.eps = step if eps is None else eps

        def whole(given: Sequence[Any], others: Sequence[Any]) -> Any:
            rest = iter(given)
            return self.tree.unflatten(
                [others[i] if i in fixed else next(rest) for i in range(len(leaves))]
            )

        still = [np.zeros(v.shape, float0) if i in fixed else None for i, v in enumerate(values)]
        self.tangent = _defined(whole([_like(self.rng, x) for x in xs], still))
        self.ts = _arrays(self.tangent)
        flat = lambda given: _arrays(f(*whole(given, leaves)))  # noqa: E731
        self.expected = _difference(flat, xs, self.ts, self.eps)

    def forward(self, dots: Any, note: str = "") -> None:
        for a, b in zip(_arrays(dots), self.expected, strict=True):
            self.close(a, b, f"forward mode against finite differences{note}")

    def reverse(self, ct: Any, cts: Any, note: str = "") -> None:
        got, want = _paired(_arrays(cts), self.ts), _paired(_arrays(ct), self.expected)
        self.close(got, want, f"reverse mode against finite differences{note}")

    def close(self, a: Any, b: Any, message: str) -> None:
        a, b = (_wide(np.asarray(x)) for x in (a, b))
        np.testing.assert_allclose(a, b, rtol=self.rtol, atol=self.atol, err_msg=message)


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
    function, args = f, tuple(args)
    f = lambda *xs: _defined(function(*xs))  # noqa: E731
    point = _Point(f, args, "check_grads", eps, (atol, rtol))
    for mode in modes:
        if mode == "fwd":
            derivative: Callable = lambda *xs: jvp(f, xs, point.tangent)[1]  # noqa: E731
            point.forward(derivative(*args))
        else:
            out, pull = vjp(f, *args)
            ct = _cotangent(point.rng, out)
            derivative = lambda *xs, c=_cotangent(point.rng, out): vjp(f, *xs)[1](c)  # noqa: E731
            point.reverse(ct, pull(ct))
        if order > 1:
            check_grads(
                derivative, args, order - 1, modes, point.atol * 10, point.rtol * 10, point.eps
            )


@border
def check_jvp(
    f: Callable,
    f_jvp: Callable,
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Compare a derivative of your own in forward mode with finite differences of `f` at `args`.

    Args:
      f: takes trees of real or complex arrays, and returns such a tree.
      f_jvp: `f_jvp(primals, tangents)` returns (what `f` returns, its tangent), as `plait.jvp`
        does when `f` is given to it.
      args: the point of comparison, a tuple of arguments.
      atol, rtol, eps: as for `check_grads`.
      err_msg: is appended to the message.

    Raises AssertionError if they disagree, TypeRule for arguments that cannot be checked.

    >>> import plait
    >>> rule = lambda xs, ts: (xs[0] * xs[0], 2 * xs[0] * ts[0])
    >>> plait.test_util.check_jvp(lambda x: x * x, rule, (3.0,))
    """
    args, note, point = _given(f, f_jvp, "check_jvp", args, eps, (atol, rtol), err_msg)
    out, dots = f_jvp(args, point.tangent)
    _same_values(point, out, f(*args), note)
    point.forward(dots, note)


@border
def check_vjp(
    f: Callable,
    f_vjp: Callable,
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Compare a derivative of your own in reverse mode with finite differences of `f` at `args`.

    Args:
      f: takes trees of real or complex arrays, and returns such a tree.
      f_vjp: `f_vjp(*args)` returns (what `f` returns, a function from its cotangent to those of
        the arguments), as `plait.vjp` does when `f` is given to it.
      args: the point of comparison, a tuple of arguments.
      atol, rtol, eps: as for `check_grads`.
      err_msg: is appended to the message.

    Raises AssertionError if they disagree, TypeRule for arguments that cannot be checked.

    >>> import plait
    >>> plait.test_util.check_vjp(
    ...     lambda x: x * x, lambda x: (x * x, lambda t: (2 * x * t,)), (3.0,))
    """
    args, note, point = _given(f, f_vjp, "check_vjp", args, eps, (atol, rtol), err_msg)
    out, pull = f_vjp(*args)
    _same_values(point, out, f(*args), note)
    ct = _cotangent(point.rng, out)
    point.reverse(ct, pull(ct), note)


def _given(
    f: Callable, own: Callable, who: str, args: Any, eps: float | None, tols: tuple, err_msg: str
) -> tuple[tuple, str, _Point]:
    """Return (arguments, the end of the message, the point of comparison)."""
    expect_function(f, who)
    expect_function(own, f"the derivative for {who}")
    _expect_tuple(who, args)
    point = _Point(lambda *xs: _defined(f(*xs)), tuple(args), who, eps, tols)
    return tuple(args), f"; {err_msg}" if err_msg else "", point


def _same_values(point: _Point, out: Any, expected: Any, note: str) -> None:
    for a, b in zip(_arrays(out), _arrays(expected), strict=True):
        point.close(a, b, f"the value beside the derivative against the function's{note}")


def _expect_tuple(who: str, args: Any) -> None:
    if not isinstance(args, tuple | list):
        raise ArgumentError(
            f"{who} takes a tuple of arguments, not {type(args).__name__}",
            fix=f"write {who}(f, (x,), ...)",
        )


def _expect(f: object, args: Any, order: int | str, modes: Sequence[Any]) -> None:
    expect_function(f, "check_grads")
    _expect_tuple("check_grads", args)
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
    return sum(np.sum(_wide(c) * _wide(t)) for c, t in zip(cts, ts, strict=True)).real
