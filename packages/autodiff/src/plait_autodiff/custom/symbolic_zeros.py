"""Symbolic zeros: tangents and cotangents that custom rules can recognise as zero.

Invariant: a symbolic zero has a type and no elements; no computation makes or passes one.
"""

from collections.abc import Sequence
from typing import Any

from plait import tree as plait_tree
from plait.ext.errors import OperandTypeError, TreeMismatch, TypeRule
from plait.ext.ops.collective import varied
from plait.ext.trace import admitted
from plait.ext.types import INTEGER, Aval, float0
from plait.ext.values import Literal

from ..tangents import no_tangent
from .variants import Present

__all__ = ["CustomPrimal", "SymbolicZero", "custom_vjp_primal_tree_values"]


class SymbolicZero:
    """The zero tangent or cotangent that a rule defined with `symbolic_zeros=True` receives.

    Such rules may return it, too.

    >>> import plait
    >>> @plait.custom_jvp
    ... def scaled(x, k):
    ...     return x * k
    >>> def rule(primals, tangents):
    ...     (x, k), (tx, tk) = primals, tangents
    ...     assert type(tk) is plait.SymbolicZero and tk.shape == ()
    ...     return scaled(x, k), tx * k
    >>> scaled.defjvp(rule, symbolic_zeros=True) is rule
    True
    >>> plait.jvp(lambda x: scaled(x, 3.0), (2.0,), (1.0,))[1]
    Array(3., dtype=float32, weak_type=True)
    """

    __slots__ = ("aval",)
    aval: Aval

    def __init__(self, aval: Aval):
        self.aval = aval

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval!r})"

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes of the axes."""
        return self.aval.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.aval.ndim

    @property
    def dtype(self) -> Any:
        """The dtype of the value it belongs to; float0 if that is integer or boolean."""
        return self.aval.tangent_type.dtype


class CustomPrimal:
    """An argument of a forward rule with symbolic zeros.

    `value` is the argument; `perturbed` is True if its cotangent is wanted.
    """

    __slots__ = ("value", "perturbed")
    value: object
    perturbed: bool

    def __init__(self, value: object, perturbed: bool):
        self.value, self.perturbed = value, perturbed

    def __repr__(self) -> str:
        return f"CustomPrimal({self.value!r}, perturbed={self.perturbed})"


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """Return an argument of a forward rule with symbolic zeros, with values in place of the
    `CustomPrimal`s that it holds.

    >>> import plait
    >>> plait.custom_derivatives.custom_vjp_primal_tree_values(
    ...     {"x": plait.CustomPrimal(2.0, True), "n": plait.CustomPrimal(3, False)})
    {'n': 3, 'x': 2.0}
    """
    of = lambda leaf: leaf.value if leaf.__class__ is CustomPrimal else leaf  # noqa: E731
    return plait_tree.map(of, tree)


def differentials(flat: Sequence[Any], avals: Sequence[Aval], present: Present | None) -> list[Any]:
    """Return one differential per value, as users see them.

    `flat` holds those of the inexact values that are `present`.  The others become symbolic zeros,
    or float0 if the rule does not take symbolic zeros (`present` is None).
    """
    it = iter(flat)
    if present is None:
        return [next(it) if a.varies else no_tangent(a) for a in avals]
    there = iter(present)
    out = []
    for a in avals:
        out.append(next(it) if a.varies and next(there) else SymbolicZero(a))
    return out


def differential(who: str, d: object, aval: Aval, what: str) -> Any:
    """Return a tangent or cotangent that a rule returned, as a value of the type `aval`.

    None, symbolic zeros and arrays of float0 are zero; the latter two must have the value's shape.
    Raises TreeMismatch for an object that is not an array, OperandTypeError for another type.
    """
    return typed(_value(who, d, aval, what), aval, who, what)


def _value(who: str, d: Any, aval: Aval, what: str) -> Any:
    if d is None:
        return Literal(0, aval)
    if d.__class__ is SymbolicZero or getattr(d, "dtype", None) == float0:
        return Literal(0, Aval(d.shape, aval.dtype if d.dtype == float0 else d.dtype))
    try:
        return admitted(d)
    except TypeRule:
        raise TreeMismatch(
            f"{who} returned {type(d).__name__} as the {what} of a value of type {aval!r}",
            fix=f"return a {what} for every part of the value, or None for zero",
        ) from None


def typed(t: Any, aval: Aval, who: str, what: str) -> Any:
    """Return a differential converted to the type of its value.

    Python numbers take that type.  Cotangents of another precision are rounded, as sums of
    cotangents are, so that a gradient has the dtype of its argument.  A differential that is the
    same on all devices is made to vary if its value does.
    """
    if not t.aval.vma >= aval.vma:
        t = varied(t, aval.vma)
    over = sorted(t.aval.vma - aval.vma)
    if over and what == "tangent":
        raise OperandTypeError(
            f"{who} returned a tangent of type {t.aval!r}, which varies along {over}, for a value "
            f"of type {aval!r}, which does not",
            fix=f"return lax.psum(t, {over[0] if len(over) == 1 else tuple(over)!r}), if the value "
            "is a sum over devices",
        )
    if t.aval.same_type(aval):
        return t
    gives_way = t.aval.weak_type or (what == "cotangent" and t.aval.category >= INTEGER)
    if t.aval.shape == aval.shape and gives_way and t.aval.category <= aval.category:
        return Literal(t.value, aval) if t.__class__ is Literal else t.astype(aval.dtype)
    what = f"an {what}" if what[0] in "aeiou" else f"a {what}"
    raise OperandTypeError(
        f"{who} returned {what} of type {t.aval!r} for a value of type {aval!r}, where one of "
        f"type {aval!r} is expected",
        fix=f"{what} has the shape and dtype of the value it belongs to",
    )
