"""closure_convert, custom_gradient, fwd_and_bwd: convert functions for use in custom derivatives.

Invariant: values that a converted function closes over are passed to it, or are the same for every
call.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from plait import jit
from plait.ext.errors import ArgumentError, OperandTypeError, border
from plait.ext.ir import evaluate
from plait.ext.ops.shape import materialise_at_ground
from plait.ext.trace import Value, arguments, name_of, trace, wraps
from plait.ext.tree import Partial, flatten, flatten_up_to
from plait.ext.values import as_value
from plait.typing import ArrayLike

from ..api import vjp
from ..tangents import expect_function, is_single, no_tangent, numbers, of_chosen
from .vjp import custom_vjp

__all__ = ["closure_convert", "custom_gradient", "fwd_and_bwd"]


# ---- closed-over values as arguments ---------------------------------------------------------


class _Converted:
    """A traced function of its arguments, followed by the values that it closed over."""

    def __init__(self, fun: Callable, args: tuple):
        traced = trace(fun, args, {}, "closure_convert")
        self.program, self.tree, self.example = traced.program, traced.tree, args
        self.in_tree, self.avals = flatten(args)[1], [v.aval for v in traced.values]
        captured = traced.captured
        self.moved = [i for i, x in enumerate(captured) if x.aval.varies]
        self.rest = {i: x for i, x in enumerate(captured) if not x.aval.varies}
        self.consts = [captured[i] for i in self.moved]

    def __call__(self, *args: Any) -> Any:
        n = len(args) - len(self.moved)
        front = dict(self.rest) | dict(zip(self.moved, args[n:]))
        flatten_up_to(self.in_tree, args[:n], self.example, "a call of a converted function")
        values, _ = arguments(args[:n], {}, "closure_convert")
        for v, a in zip(values, self.avals, strict=True):
            if v.aval.shape != a.shape or v.aval.dtype != a.dtype:
                raise OperandTypeError(
                    f"a converted function was made for {a!r}, and is given {v.aval!r}",
                    fix="call closure_convert with examples of these types",
                )
        operands = [*(front[i] for i in range(len(front))), *values]
        return self.tree.unflatten(map(materialise_at_ground, evaluate(self.program, operands)))


@border
def closure_convert(
    fun: Callable[..., Any], *example_args: object
) -> tuple[Callable[..., Any], list[Any]]:
    """Return (converted, consts) such that `converted(*args, *consts)` is `fun(*args)`.

    `converted` closes over no value that could be differentiated.

    Args:
      fun: takes and returns trees of arrays.
      example_args: arguments of the types that `converted` will be called with.

    Returns:
      The function, and the values that `fun` closes over which have a floating dtype and are being
      traced.  They let a rule state how its result depends on these values.

    Raises TypeRule if `converted` is called with arguments of other types.

    >>> import plait
    >>> def slope(y):
    ...     f, consts = plait.closure_convert(lambda x: x * y, 1.0)
    ...     return f(2.0, *consts)
    >>> plait.grad(slope)(3.0)
    Array(2., dtype=float32, weak_type=True)
    """
    expect_function(fun, "closure_convert")
    converted = _Converted(fun, example_args)
    return converted, converted.consts


# ---- values together with their pullbacks ------------------------------------------------------


@border
def custom_gradient(fun: Callable) -> Callable:
    """Decorate a function that returns both its value and its pullback.

    Args:
      fun: takes trees of arrays, and returns (value, pullback).  `pullback(ct)` returns a tuple
        with a cotangent for each argument; the tuple may be left out for a single argument.

    Returns the function that returns the value.  Keyword arguments are not differentiated.

    >>> import plait
    >>> @plait.custom_gradient
    ... def clipped(x):
    ...     return x, lambda ct: (plait.numpy.clip(ct, -1, 1),)
    >>> plait.grad(lambda x: 5 * clipped(x))(2.0)
    Array(1., dtype=float32, weak_type=True)
    """
    expect_function(fun, "custom_gradient")

    @border
    @wraps(fun)
    def with_gradient(*args: object, **kwargs: object) -> Any:
        @functools.partial(custom_vjp)
        def value(*xs: Value) -> Any:
            return _value_and_pullback(fun, xs, kwargs)[0]

        def fwd(*xs: Value) -> Any:
            out, pullback = _value_and_pullback(fun, xs, kwargs)
            f, consts = closure_convert(pullback, _like_cotangents(out))
            return out, Partial(_Last(f), *consts)

        def bwd(pullback: Partial, ct: object) -> tuple:
            cts = pullback(ct)
            alone = len(args) == 1 and not (isinstance(cts, tuple) and len(cts) == 1)
            return (cts,) if alone else tuple(cts)

        value.defvjp(fwd, bwd)
        return value(*args)

    return with_gradient


def _like_cotangents(out: object) -> Any:
    """Return an example of the cotangents of results."""
    leaves, tree = flatten(out)
    avals = [as_value(x).aval for x in leaves]
    return tree.unflatten([x if a.varies else no_tangent(a) for x, a in zip(leaves, avals)])


class _Last:
    """A converted function of one argument, which is passed last."""

    def __init__(self, f: Callable):
        self.f = f

    def __call__(self, *args: Any) -> Any:
        return self.f(args[-1], *args[:-1])


def _value_and_pullback(fun: Callable, xs: tuple, kwargs: dict[str, Any]) -> tuple:
    out = fun(*xs, **kwargs)
    if not isinstance(out, tuple | list) or len(out) != 2 or not callable(out[1]):
        name = name_of(fun, "the function")
        raise ArgumentError(
            f"custom_gradient: {name} must return (value, pullback), and returned {out!r}",
            fix="return value, lambda ct: (cotangent of each argument, ...)",
        )
    return tuple(out)


# ---- as a pair of functions --------------------------------------------------------------------


@border
def fwd_and_bwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    jitted: bool = True,
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return functions (fwd, bwd) for the forward and the backward pass.

    `fwd(*args)` returns (result, pullback), or (result, pullback, aux); `bwd(pullback, ct)`
    returns the cotangents.

    Args:
      fun: takes and returns trees of arrays.
      argnums: which arguments to differentiate; for an int `bwd` returns one cotangent, for a
        sequence a tuple.
      has_aux: `fun` returns (result, aux).
      jitted: whether both are compiled.

    >>> import plait
    >>> fwd, bwd = plait.fwd_and_bwd(lambda x, y: x * y, argnums=0)
    >>> y, pullback = fwd(2.0, 3.0)
    >>> float(bwd(pullback, 1.0))
    3.0
    """
    expect_function(fun, "fwd_and_bwd")
    nums, single = numbers(argnums, "fwd_and_bwd"), is_single(argnums)

    def fwd(*args: Any, **kwargs: object) -> tuple:
        of, chosen = of_chosen(fun, nums, args, kwargs)
        return vjp(of, *chosen, has_aux=has_aux)

    def bwd(pullback: Callable, ct: ArrayLike) -> Any:
        cts = pullback(ct)
        return cts[0] if single else cts

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
