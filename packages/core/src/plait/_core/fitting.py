"""Structures that differ only in capacity: a batch is taken where a larger one was expected.

The static part of some classes holds capacities, such as how many rows there is room for.  Such a
class declares how a value gets the capacities of another structure, which capacities hold several,
and which of a function's programs serves a value.

Invariant: capacities alone change; all else that structures compare must be equal.  Trees without
such classes cost one look-up.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._base.freezing import bare
from ..tree import TreeDef, exact_key, flatten, registry
from .array import Array
from .same_parts import parts_that_may_be_one

__all__ = [
    "Fit", "aligned", "chosen", "fit_of", "fitted", "has_capacities", "joined", "refitted",
    "register_capacities", "static_parts",
]  # fmt: skip


class Capacities(NamedTuple):
    """Declarations of a class; see `register_capacities`."""

    fit: Callable[[Any, Any], Any]
    join: Callable[[Sequence[Any]], Any]
    choose: Callable[[Sequence[Any], Sequence[Sequence[Any]]], Sequence[Any]]


_classes: dict[type, Capacities] = {}
_KNOWN = frozenset((Array, np.ndarray))
_children = registry.flatten
"""As `flatten`, of instances of such classes.  Calls of jitted functions flatten these twice, and
they are not deep enough for the errors that `flatten` explains."""


def register_capacities(
    cls: type,
    fit: Callable[[Any, Any], Any],
    join: Callable[[Sequence[Any]], Any],
    choose: Callable[[Sequence[Any], Sequence[Sequence[Any]]], Sequence[Any]],
) -> None:
    """Declare that static parts of a class hold capacities, which functions may change.

    A *model* is an instance whose leaves are placeholders: only its static part counts.

    Args:
      cls: a class that is registered as a tree.
      fit: `fit(x, model)` returns the value with the static part of the model, or None if it does
        not fit, or differs in more than capacities.
      join: `join(models)` returns a model whose capacities hold all of these, or None.
      choose: `choose(models, known)` returns the models with which jit calls a function for values
        like `models`.  It is one of `known`, those of earlier calls, or new ones; capacities
        never become smaller.
    """
    _classes[cls] = Capacities(fit, join, choose)


def has_capacities(kind: TreeDef) -> bool:
    """Return whether a structure has nodes of such classes."""
    waiting = [kind] if _classes else []
    while waiting:  # deep trees pass through jit, so this does not call itself
        kind = waiting.pop()
        if _is_unit(kind):
            return True
        waiting += kind.children()
    return False


class _Unit(NamedTuple):
    """A node of such a class in a structure, and the number of its first leaf."""

    kind: TreeDef
    at: int

    def model(self) -> Any:
        return self.kind.unflatten(range(self.kind.num_leaves))


def _units(kind: TreeDef) -> list[_Unit]:
    """Return the nodes of such classes in a structure.

    No other node is put together: users' classes may refuse placeholders."""
    found: list[_Unit] = []
    _collect(kind, 0, found)
    return found


def _collect(kind: TreeDef, at: int, found: list[_Unit]) -> None:
    if _is_unit(kind):
        found.append(_Unit(kind, at))
        return
    for child in kind.children():
        _collect(child, at, found)
        at += child.num_leaves


def _is_unit(kind: TreeDef) -> bool:
    data = kind.node_data()
    return data is not None and data[0] in _classes


def _alike_around(a: TreeDef, b: TreeDef) -> bool:
    """Return whether two structures have nodes of one class in the same places, and are equal
    elsewhere."""
    mine, theirs = a.node_data(), b.node_data()
    if mine is None or theirs is None:
        return mine is theirs
    if mine[0] is not theirs[0]:
        return False
    if mine[0] in _classes:
        return True
    kids = a.children(), b.children()
    return mine[1] == theirs[1] and len(kids[0]) == len(kids[1]) and all(map(_alike_around, *kids))


def _rebuilt(kind: TreeDef, models: Iterator[Any]) -> TreeDef:
    """Return a structure with the next models in place of its nodes of such classes."""
    if _is_unit(kind):
        return flatten(next(models))[1]
    data = kind.node_data()
    if data is None:
        return kind
    children = [_rebuilt(child, models) for child in kind.children()]
    make: Any = TreeDef.from_node_data_and_children  # type: ignore[attr-defined]
    return make(registry, data, children)


def fitted(tree: object, want: TreeDef) -> Any:
    """Return a tree with the capacities of a structure; None if it does not fit."""
    if not has_capacities(want):
        return None
    leaves, kind = flatten(tree)
    if not _alike_around(kind, want):
        return None
    for own, other in zip(_units(kind), _units(want), strict=True):
        end = own.at + own.kind.num_leaves
        x, model = own.kind.unflatten(leaves[own.at : end]), other.model()
        x = _classes[x.__class__].fit(x, model)
        if x is None:
            return None
        leaves[own.at : end] = flatten(x)[0]
    return want.unflatten(leaves)


class Fit(NamedTuple):
    """The change that gives trees of one structure the capacities of another one.

    Attributes:
      want: that structure.
      models: for each part with capacities, the model that it is fitted to, or None if it has these
        capacities; None for other parts.
      one: the leaves whose identity matters.
    """

    want: TreeDef
    models: tuple[Any, ...]
    one: tuple[int, ...]


def fit_of(tree: object, want: TreeDef) -> tuple[tuple[Any, ...], Fit] | None:
    """Return a key of the structure of a tree, and how such trees get the capacities of `want`.

    Returns None if keys of dictionaries must be compared by more than ==."""
    if exact_key(want) is not want:
        return None
    key, _, inside = _parted(tree)
    models: list[Any] = []
    units = iter(_units(want))
    for taken in inside:
        if taken is None:
            models.append(None)
            continue
        unit = next(units)
        models.append(None if unit.kind == taken[1] else unit.model())
    return key, Fit(want, tuple(models), parts_that_may_be_one(want))


def _parted(tree: object) -> tuple[tuple[Any, ...], list[Any], list[Any]]:
    """Return (key of the structure, parts, for each part with capacities its leaves and structure).

    The key holds static parts, which hashes of structures leave out."""
    parts, around = _children(tree, _holds_capacities)
    key: list[Any] = [around]
    inside: list[Any] = []
    for x in parts:
        if x.__class__ not in _classes:
            inside.append(None)
            continue
        taken = _children(x)
        data = taken[1].node_data()
        assert data is not None  # the class is registered
        key += taken[1], data[1]
        inside.append(taken)
    return tuple(key), parts, inside


def _holds_capacities(x: object) -> bool:
    return x.__class__ in _classes


def refitted(tree: object, fits: dict[tuple[Any, ...], Fit]) -> tuple[list[Any], Fit] | None:
    """Return the leaves of a tree with other capacities, and how it was fitted.

    Returns None if none of `fits`, by their keys, are for it, or if values do not fit."""
    key, parts, inside = _parted(tree)
    how = fits.get(key)
    if how is None:
        return None
    leaves: list[Any] = []
    for x, taken, model in zip(parts, inside, how.models):
        if taken is None:
            leaves.append(x)
            continue
        own = taken[0]
        if model is not None:
            if not _KNOWN.issuperset(map(type, own)):
                return None
            x = _classes[x.__class__].fit(x, model)
            if x is None:
                return None
            own = _children(x)[0]
        leaves += own
    return leaves, how


def joined(kinds: Sequence[TreeDef]) -> TreeDef | None:
    """Return the structure with capacities that hold all of these; None without one."""
    first, *others = kinds
    if not has_capacities(first) or not all(_alike_around(first, k) for k in others):
        return None
    models = []
    for units in zip(*map(_units, kinds), strict=True):
        each = [u.model() for u in units]
        model = _classes[each[0].__class__].join(each)
        if model is None:
            return None
        models.append(model)
    return _rebuilt(first, iter(models))


def aligned(trees: Sequence[Any]) -> list[Any] | None:
    """Return trees with common capacities, if they differ in capacities only; None if they are
    equal, or differ in more."""
    kinds = [flatten(t)[1] for t in trees]
    if all(k == kinds[0] for k in kinds):
        return None
    want = joined(kinds)
    if want is None:
        return None
    out = [fitted(t, want) for t in trees]
    return None if any(t is None for t in out) else out


def static_parts(kind: TreeDef) -> tuple[Any, ...]:
    """Return the static parts of all nodes of such classes.

    Hashes of structures leave static parts out, so tables of structures that differ only in
    capacities are keyed on these, too."""
    data = kind.node_data()
    if data is None:
        return ()
    below = [p for k in kind.children() for p in static_parts(k)]
    return (bare(data[1]), *below) if data[0] in _classes else tuple(below)


def chosen(kind: TreeDef, known: Iterable[TreeDef]) -> TreeDef:
    """Return the structure with which jit calls a function for values of a structure.

    `known` are those of earlier calls of the function."""
    mine = [u.model() for u in _units(kind)]
    others = [[u.model() for u in _units(k)] for k in known if _alike_around(kind, k)]
    new: list[Any] = list(mine)
    for cls in dict.fromkeys(m.__class__ for m in mine):
        at = [i for i, m in enumerate(mine) if m.__class__ is cls]
        got = _classes[cls].choose([mine[i] for i in at], [[o[i] for i in at] for o in others])
        for i, model in zip(at, got, strict=True):
            new[i] = model
    return _rebuilt(kind, iter(new))
