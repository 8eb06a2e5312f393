"""Checks of the arguments, tangents and cotangents that users pass to derivatives.

Invariant: the results have exactly the types that the interpreters need.  ZERO for values that
have no derivative is introduced here only.
"""

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import numpy as np

from plait.ext.errors import ArgumentError, Namer, OperandTypeError, ShapeError, TreeMismatch
from plait.ext.sizes import is_symbolic
from plait.ext.trace import Handle, Value, admitted, admitted_leaves, leaf_name, name_of
from plait.ext.tree import difference, flatten, in_words
from plait.ext.types import COMPLEX, INTEGER, OPAQUE, Aval, float0
from plait.ext.values import Literal, as_value

from .adable import adables, beside_numbers
from .forward import ZERO


def expect_function(f: object, what: str) -> None:
    if not callable(f):
        fix = f"pass a function as {what}" if " of " in what else f"write {what}(f)"
        raise ArgumentError(f"{what} needs a function, not {f!r}", fix=fix)


# ---- tangents as users give them -----------------------------------------------------------


def no_tangent(aval: Aval) -> Any:
    """Return the tangent or cotangent of a value that has no derivative.

    It is an array of numpy, as in JAX, unless a size is known by name only.
    """
    if is_symbolic(aval.shape):
        return Literal(False, Aval(aval.shape, float0))
    return np.zeros(aval.shape, float0)


_RULE = "it has the dtype of the value that it belongs to, or float0 if that is integer or boolean"


def tangent(t: Any, of: Aval, what: str) -> Any:
    """Return a user's tangent or cotangent of a value of type `of` as a value, or ZERO."""
    given, want = getattr(t, "dtype", None), of.tangent_type
    if not of.varies:
        if given == float0:
            return ZERO
        raise ShapeError(
            f"{what}; {_RULE}, and this is {as_value(t).aval!r} of {of!r}",
            fix="pass numpy.zeros(shape, plait.float0)",
        )
    if given == float0:
        raise OperandTypeError(
            f"{what}; {_RULE}, and this is float0 of {of!r}",
            fix=f"pass zeros of dtype {want.dtype.name}",
        )
    t = admitted(t)
    if t.aval.shape != of.shape:
        raise ShapeError(
            f"{what}: the primal has shape {of.shape} and its tangent {t.aval.shape}",
            fix="give a tangent of the shape of the primal",
        )
    if t.aval.dtype != want.dtype:
        if not t.aval.weak_type or t.aval.category > want.category:
            raise ArgumentError(
                f"{what}; {_RULE}, and this is {t.aval!r} of {of!r}",
                fix=f"convert it: .astype({want.dtype.name!r})",
            )
        t = Literal(t.value, want) if t.__class__ is Literal else t.astype(want.dtype)
    return t


def given_cotangent(ct: Any, of: Aval, what: str) -> Any:
    """Return a user's cotangent of a result of type `of` as a value, or ZERO.

    The cotangent of an integer or boolean result is always zero, also if the user passed the
    result's own dtype or a Python integer.
    """
    if not of.varies and of.category <= INTEGER and getattr(ct, "dtype", None) != float0:
        given = admitted(ct).aval
        weak = given.weak_type and given.category <= INTEGER
        if given.shape == of.shape and (weak or given.dtype == of.dtype):
            return ZERO
    return tangent(ct, of, what)


def whole(t: Any, of: Aval, what: str) -> Any:
    """Return an integer cotangent of a value of type `of`, which has its shape and dtype."""
    t = admitted(t)
    fits = t.aval.dtype == of.dtype or (t.aval.weak_type and t.aval.category <= of.category)
    if t.aval.shape != of.shape or not fits:
        raise OperandTypeError(
            f"{what}: {t.aval!r} for a result that is {of!r}",
            fix="give integers of the result's shape and dtype",
        )
    return t if t.aval.dtype == of.dtype else t.astype(of.dtype)


def matching(want: Aval | Sequence[Any], got: Any, kind: Any, what: str) -> list[Any]:
    """Return the leaves of `got`, which must have the structure `kind` of `want`."""
    got = adables.opened(got)
    leaves, tree = flatten(got)
    if tree != kind:
        raise TreeMismatch(
            f"{what} must have one structure: {difference(want, got)}",
            fix=f"give a tree like {in_words(kind)}",
        )
    return leaves


def pair_of(out: Value | tuple[Any, ...], what: str) -> tuple[Any, ...]:
    """Return (out, aux), the result of a function under `what`.

    The current interpreter must be the one in which the function ran.

    Raises ArgumentError for another result, UnexpectedTracerError for an escaped value in aux.
    """
    if not isinstance(out, tuple | list) or len(out) != 2:
        raise ArgumentError(
            f"{what} with has_aux=True needs a function that returns a pair (out, aux), and got "
            f"{in_words(flatten(out)[1])}",
            fix="return (out, aux), where aux may be a tuple, or leave out has_aux=True",
        )
    for x in flatten(adables.opened(out[1]))[0]:
        if isinstance(x, Value):
            admitted(x)
    return tuple(out)


# ---- arguments to differentiate ------------------------------------------------------------


def numbers(argnums: Any, what: str) -> tuple[int, ...]:
    """Return argument numbers given by a user as a tuple; raise TypeRule for other values."""
    given = (argnums,) if is_single(argnums) else argnums
    try:
        return tuple([index(n) for n in given])
    except TypeError:
        raise ArgumentError(
            f"argnums of {what} is {argnums!r}", fix="give a number, or a tuple of numbers"
        ) from None


def is_single(argnums: Any) -> bool:
    """Return whether argument numbers given by a user are one number, and not several."""
    return not isinstance(argnums, tuple | list | range)


def positions(nums: tuple[int, ...], args: tuple[Any, ...], fun: Callable[..., Any]) -> list[int]:
    """Return the positions of the arguments to differentiate; raise TypeRule if one is absent."""
    found = [position(n, args, fun) for n in nums]
    if len(set(found)) != len(found):
        raise ArgumentError(
            f"argnums {nums} names an argument of {name_of(fun)} twice", fix="name it once"
        )
    return found


def of_chosen(
    fun: Callable[..., Any], nums: tuple[int, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return (function of the arguments that `nums` names, these arguments); fix the others."""
    at = positions(nums, args, fun)

    def of(*chosen: object) -> Any:
        full = list(args)
        for i, x in zip(at, chosen):
            full[i] = x
        return fun(*full, **kwargs)

    return of, tuple([args[i] for i in at])


def position(n: int, args: tuple[Any, ...], fun: Callable[..., Any]) -> int:
    if not -len(args) <= n < len(args):
        raise ArgumentError(
            f"argnums names argument {n}, and {name_of(fun)} was called with {len(args)} "
            "positional arguments",
            fix="use "
            + ("argnums=0" if len(args) == 1 else f"numbers from 0 to {len(args) - 1}")
            + ", or pass more arguments by position"
            if args
            else "pass that argument by position, not by name",
        )
    return n % len(args)


_INTEGERS = ("grad", "jacrev")
"""The functions that have `allow_int`."""


def expect_differentiable(
    chosen: tuple[Any, ...],
    holomorphic: bool,
    allow_int: bool,
    what: str,
    named: Callable[[], Namer],
) -> None:
    """Refuse arguments that cannot be differentiated; `named()` names the paths in `chosen`."""
    fixed = beside_numbers(chosen)
    chosen = adables.opened(chosen)
    values = admitted_leaves(flatten(chosen)[0], chosen, named)
    for i, v in enumerate(values):
        a = v.aval
        if isinstance(v, Handle):
            told = leaf_name(chosen, i, named())
            raise v.refused(f"what {what} is with respect to ({told})")
        if holomorphic and a.category != COMPLEX:
            raise OperandTypeError(
                f"{what} with holomorphic=True is for complex arguments, and "
                f"{leaf_name(chosen, i, named())} is {a!r}",
                fix="convert with .astype('complex64')",
            )
        if not a.varies and not allow_int and i not in fixed:
            raise OperandTypeError(
                f"{what} is with respect to floating or complex arguments, and "
                f"{leaf_name(chosen, i, named())} is {a!r}",
                fix="pass it as an argument that argnums leaves out"
                if a.category == OPAQUE
                else "convert it to a floating dtype"
                + (", or pass allow_int=True for a float0 gradient" if what in _INTEGERS else ""),
            )
        if a.category == COMPLEX and not holomorphic and what not in _INTEGERS:
            raise OperandTypeError(
                f"{what} of complex inputs needs holomorphic=True, or real and imaginary parts",
                fix="pass holomorphic=True, or differentiate with respect to the parts",
            )


def expect_results(ys: list[Value], holomorphic: bool, what: str, reverse: bool) -> None:
    """Refuse results of the wrong kind.

    Results must be complex if the function is holomorphic.  Otherwise reverse mode needs real
    results, because it pulls back one real number for each element.
    """
    for y in ys:
        if holomorphic and y.aval.category != COMPLEX:
            raise OperandTypeError(
                f"{what} with holomorphic=True is of complex results, not of {y.aval!r}",
                fix="leave out holomorphic=True: of real results complex inputs have a gradient",
            )
        if y.aval.category == COMPLEX and reverse and not holomorphic:
            raise OperandTypeError(
                f"{what} is of real results, not of {y.aval!r}",
                fix="pass holomorphic=True if the inputs are complex, too; or return the parts",
            )
