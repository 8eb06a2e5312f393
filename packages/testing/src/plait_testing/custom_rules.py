"""Checks that a transformation keeps the custom rules of functions, or says which it loses.

A rule here is wrong on purpose: the function's slope is 0.5 and its rule says 1.5, mapping adds 4.
So a derivative of the transformed function that equals the one of the same function without a rule
shows that the rule was lost.

Invariant: the reference is the same function without a rule, or an oracle of the transformation.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import plait
from plait import jit
from plait.errors import RuleLost
from plait.ext import Carrier, MissingRule
from plait.ext.ops.elementwise import add, mul
from plait.ext.trace import Value
from plait.ext.types import COMPLEX, FLOATING, category
from plait.tree import flatten

from .report import Checks, Inapplicable, agree

Step = Callable[[Any], Any]
Api = Callable[[Step], Callable[..., Any]]


class Kind(NamedTuple):
    """A kind of custom rule: its name in `commutes`, and the use of a function that applies it."""

    name: str
    ruled: Callable[[], Step]
    used: Callable[[Callable[..., Any], Sequence[Any]], Any]


def plain(x: Value) -> Any:
    """Return x * 0.5 + 1: the function that has the rules."""
    return add(mul(x, 0.5), 1.0)


def _custom_jvp() -> Step:
    f = _public("custom_jvp")(plain)
    f.defjvp(lambda primals, tangents: (plain(*primals), mul(tangents[0], 1.5)))
    return f


def _custom_vjp() -> Step:
    f = _public("custom_vjp")(plain)
    f.defvjp(lambda x: (plain(x), None), lambda _, ct: (mul(ct, 1.5),))
    return f


def _custom_vmap() -> Step:
    f = _public("custom_vmap")(plain)
    f.def_vmap(lambda size, stacked, x: (add(plain(x), 4.0), stacked[0]))
    return f


def _public(name: str) -> Callable[..., Any]:
    """Return a function of a plugin; raise Inapplicable if the plugin is not installed."""
    found = getattr(plait, name, None)
    if found is None:
        raise Inapplicable(f"plait.{name} is not installed")
    return found


def _slope(f: Callable[..., Any], args: Sequence[Any]) -> Any:
    """Return the gradient of the sum of the inexact results of `f`."""
    leaves, tree = flatten(list(args))
    at = [i for i, x in enumerate(leaves) if _is_inexact(x)]
    if not at:
        raise Inapplicable("no argument has a derivative")

    def total(*xs: Any) -> Any:
        given = list(leaves)
        for i, x in zip(at, xs, strict=True):
            given[i] = x
        outs = [o for o in flatten(f(*tree.unflatten(given)))[0] if _is_inexact(o)]
        if not outs:
            raise Inapplicable("no result has a derivative")
        return sum([plait.numpy.sum(o) for o in outs], plait.numpy.zeros(()))

    grad = _public("grad")(total, tuple(range(len(at))))
    return grad(*[plait.numpy.asarray(leaves[i]) for i in at])


def _stacked(f: Callable[..., Any], args: Sequence[Any]) -> Any:
    """Return the results of `f`, mapped over two copies of its arguments."""
    twice = plait.tree.map(lambda x: plait.numpy.stack([x, x]), list(args))
    return _public("vmap")(f)(*twice)


def _is_inexact(x: Value) -> bool:
    dtype = getattr(x, "dtype", None)
    kind = category(np.dtype(dtype)) if dtype is not None else None
    return isinstance(x, float) or kind in (FLOATING, COMPLEX)


KINDS = {
    "custom_jvp": Kind("derivative", _custom_jvp, _slope),
    "custom_vjp": Kind("derivative", _custom_vjp, _slope),
    "custom_vmap": Kind("mapping", _custom_vmap, _stacked),
}


def check_custom_rules(checks: Checks, api: Api, oracle: Api | None, args: Sequence[Any]) -> None:
    """Run the checks of each kind of rule, eagerly and inside of jit."""
    for name, kind in KINDS.items():
        for way, around in ((name, lambda f: f), (f"{name}, jit inside", jit)):
            checks.run(way, lambda kind=kind, around=around: _kept(kind, around, api, oracle, args))


def _kept(
    kind: Kind, around: Callable[..., Any], api: Api, oracle: Api | None, args: Sequence[Any]
) -> int:
    seen: list[Any] = []

    def watched(f: Step) -> Step:
        def g(x: Value) -> Any:
            seen.append(getattr(x, "by", None))
            return f(x)

        return g

    f = around(kind.ruled())
    try:
        without = kind.used(api(plain), args)
    except Inapplicable:
        raise
    except Exception as e:
        raise Inapplicable(f"its use fails without a rule too: {e!r}") from None
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            got = kind.used(api(watched(f)), args)
        except MissingRule as e:
            raise Inapplicable(f"it has no rule for the function's operations: {e}") from None
    if any(issubclass(w.category, RuleLost) for w in warned):
        _declared(kind, seen)
        return 1
    if _equal(got, without):
        raise AssertionError(
            f"a {kind.name} rule is lost without a word: the result is that of the function "
            f"without it.  Its carrier has to say commutes = frozenset(({kind.name!r},)), or to "
            "name it in `loses`"
        )
    if oracle is not None:
        try:
            want = kind.used(oracle(f), args)
        except Exception:  # an oracle in numpy, which cannot be traced
            return 1
        return agree(got, want, 1e-4, "with the custom rule")
    return 1


def _declared(kind: Kind, seen: Sequence[Any]) -> None:
    """Raise AssertionError unless a carrier around the function names the rules that it loses."""
    for by in seen:
        while by is not None:
            if isinstance(by, Carrier) and kind.name in by.loses:
                return
            by = by.parent
    raise AssertionError(
        f"a {kind.name} rule is lost, and the carrier names these rules neither in `commutes` nor "
        "in `loses`"
    )


def _equal(got: Value | tuple[Value, ...], want: Value | tuple[Value, ...]) -> bool:
    try:
        agree(got, want, 1e-6)
    except AssertionError:
        return False
    return True
