"""Where a pullback leaves the cotangent of each argument: `Pullback.with_refs`.

A cotangent is returned, added to a mutable reference, or not computed.

Invariant: cotangents that are not wanted take no part in the reverse pass: operations on the way to
them alone are left out.
"""

from collections.abc import Sequence
from typing import Any

from plait.ext.errors import ArgumentError, OperandTypeError, ShapeError, TreeMismatch
from plait.ext.ops.shape import convert
from plait.ext.trace import Handle
from plait.ext.tree import TreeDef, flatten, register
from plait.ext.types import Aval

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue", "Way", "expect_places", "leave", "ways"]


class Way:
    """Base of the marks below: each is equal to others of its class, and a tree without leaves."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


class GradValue(Way):
    """Ask `with_refs` to return the cotangent of an argument, as a pullback does by itself.

    >>> import plait
    >>> _, pullback = plait.vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> pullback.with_refs(plait.ad.GradValue(), plait.ad.DontWant())(1.0)
    (Array(3., dtype=float32, weak_type=True), DidntWant())
    """

    __slots__ = ()


class DontWant(Way):
    """Ask `with_refs` not to compute the cotangent of an argument.

    >>> import plait
    >>> _, pullback = plait.vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> pullback.with_refs(plait.ad.DontWant(), plait.ad.DontWant())(1.0)
    (DidntWant(), DidntWant())
    """

    __slots__ = ()


class GradRef(Way):
    """Stand, in a result, for a cotangent that was added to a reference.

    >>> import plait
    >>> _, pullback = plait.vjp(lambda x: x * x, 3.0)
    >>> total = plait.new_ref(1.0)
    >>> pullback.with_refs(total)(1.0), total
    ((GradRef(),), Ref(7., dtype=float32, weak_type=True))
    """

    __slots__ = ()


class DidntWant(Way):
    """Stand, in a result, for a cotangent that was not computed.

    >>> import plait
    >>> plait.ad.DidntWant()
    DidntWant()
    """

    __slots__ = ()


for _class in (GradValue, DontWant, GradRef, DidntWant):
    register(_class, lambda _: ((), None), lambda _, __, make=_class: make())


def ways(entries: tuple[Any, ...], in_tree: TreeDef, avals: Sequence[Aval]) -> list[Any]:
    """Return for each leaf of the arguments a reference, a GradValue or a DontWant.

    Raises TreeMismatch if the entries do not fit the arguments, ArgumentError for an entry that is
    none of these, ShapeError or OperandTypeError for a reference of another shape or dtype.
    """
    given, of = flatten(entries, is_leaf=lambda x: isinstance(x, Way))
    arguments = in_tree.unflatten(range(len(avals)))
    if len(entries) != len(arguments):
        raise TreeMismatch(
            f"with_refs takes one entry for each of {len(arguments)} arguments, and was given "
            f"{len(entries)}",
            fix="write plait.ad.GradValue() for a cotangent that is to be returned, "
            "plait.ad.DontWant() for one that is not needed",
        )
    try:
        parts = of.flatten_up_to(arguments)
    except (ValueError, TypeError):
        raise TreeMismatch(
            "an entry of with_refs has another structure than its argument",
            fix="write one entry for a whole argument, or a tree like the argument",
        ) from None
    out: list[Any] = [None] * len(avals)
    for way, part in zip(given, parts, strict=True):
        places = flatten(part)[0]
        if isinstance(way, Handle):
            if len(places) != 1:
                raise TreeMismatch(
                    "a reference is given to with_refs for an argument that is a tree",
                    fix="write a tree like the argument, with a reference for each array",
                )
            _expect_like(way, avals[places[0]])
        elif not isinstance(way, GradValue | DontWant):
            raise ArgumentError(
                f"with_refs was given {way!r}, which says nothing about a cotangent",
                fix="give a reference of plait.new_ref, plait.ad.GradValue() or "
                "plait.ad.DontWant()",
            )
        for i in places:
            out[i] = way
    return out


def _expect_like(ref: Handle, aval: Aval) -> None:
    """Raise an error unless a reference can be added to by a cotangent of an argument."""
    want = aval.tangent_type
    have = ref.contents().aval
    if not aval.varies:
        raise OperandTypeError(
            f"a reference is given to with_refs for an argument of type {aval!r}, which has no "
            "derivative",
            fix="write plait.ad.DontWant() for it",
        )
    fix = "make it like the argument: plait.new_ref(plait.numpy.zeros_like(x))"
    what = f"a reference to {have!r} is given to with_refs for a cotangent of type {want!r}"
    if have.shape != want.shape:
        raise ShapeError(what, fix=fix)
    if have.category != want.category:  # of the same kind, a wider one is an accumulator
        raise OperandTypeError(what, fix=fix)


def expect_places(where: Sequence[Any], references: Sequence[int]) -> None:
    """Raise ArgumentError unless each argument that was a reference has a place for its cotangent,
    which is added there and not returned."""
    if any(not where or isinstance(where[i], GradValue) for i in references):
        raise ArgumentError(
            "a function was differentiated by a reference, whose cotangent is added to another "
            "reference, and none was given",
            fix="write pullback.with_refs(plait.new_ref(zeros))(ct), with one entry for each "
            "argument, or plait.ad.DontWant() for the reference",
        )


def leave(cotangents: Sequence[Any], where: Sequence[Any]) -> list[Any]:
    """Leave each cotangent in its place; return what takes its place in the result."""
    out: list[Any] = []
    for ct, way in zip(cotangents, where, strict=True):
        if isinstance(way, Handle):
            held = way.contents()
            way.replace(held + convert(ct, held.aval.dtype, held.aval.weak_type))
            out.append(GradRef())
        else:
            out.append(DidntWant() if isinstance(way, DontWant) else ct)
    return out
