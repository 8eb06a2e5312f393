"""Keys of values that users give: caches use them in place of Python's ==.

In Python 1 == 1.0 == True and 0.0 == -0.0.  But a program specialised to one of them is wrong for
the others: 1 / -0.0 is not 1 / 0.0.  The rule is:

* Values of different classes differ.
* Floats, complex numbers, numpy's scalars and Decimals are alike if their bits (digits) are; a nan
  is like itself.
* Tuples, named tuples, frozensets, slices, ranges, and instances of dataclasses and attrs classes
  with a generated == are alike if the parts that == compares are alike.
* Values of any other class are alike if that class's `__eq__` returns True, as everywhere in
Python.

Invariant: all keys are made by this rule.  `freeze` makes keys that are hashed, `same` compares two
values, and `Exact` wraps values that another library compares by ==.
"""

import struct
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from decimal import Decimal
from operator import attrgetter, is_
from types import BuiltinFunctionType, FunctionType, NoneType
from typing import Any

import numpy as np

__all__ = [
    "PLAIN", "Exact", "bare", "bits_of", "exact", "freeze", "freeze_params", "number_key", "same",
]  # fmt: skip


def freeze(x: object) -> Hashable:
    """Return a hashable key of a static value.

    Two keys are equal only if the values are alike by the rule of this module.  Raises TypeError
    for a value that cannot be hashed.
    """
    kind = x.__class__
    how = _how[kind]
    return (kind, x) if how is None else (kind, how(x))


def freeze_params(params: dict[str, Any]) -> tuple[Any, ...]:
    """Return the key of parameters by name, in their order, by the rule of `freeze`."""
    return tuple([(k, freeze(v)) for k, v in params.items()])


def number_key(x: Any) -> Hashable:
    """Return the key that `freeze` returns, in less time for Python numbers."""
    kind = x.__class__
    if kind is float:
        return kind, bits_of(x)
    return (kind, x) if kind is int or kind is bool else freeze(x)


bits_of = struct.Struct("d").pack
"""Return the bits of a float, its whole key beside its class."""


def same(x: Any, y: Any) -> bool:
    """Return whether two values are alike by the rule of this module, even if they cannot be
    hashed.

    Lists and dicts are alike if their contents are.  An object is always like itself, whatever its
    class defines.
    """
    if x is y:
        return True
    kind = x.__class__
    if kind is not y.__class__:
        return False
    compare = _by_parts.get(kind.__eq__)
    if compare is not None:
        return len(x) == len(y) and compare(x, y)
    try:
        return bool(freeze(x) == freeze(y))
    except TypeError:  # it cannot be hashed
        parts = _parts(kind)
        return same(parts(x), parts(y)) if parts is not None else bool(x == y)


def _same_items(x: tuple[Any, ...], y: tuple[Any, ...]) -> bool:
    # Static values that are made anew at each call mostly hold the same objects.
    return all(map(is_, x, y)) or all(map(same, x, y))


def _same_entries(x: dict[str, Any], y: dict[str, Any]) -> bool:
    keyed = {freeze(k): v for k, v in y.items()}
    return all(k in keyed and same(v, keyed[k]) for k, v in zip(map(freeze, x), x.values()))


def _same_in_order(x: Any, y: Any) -> bool:
    return _same_items(tuple(x), tuple(y)) and _same_entries(x, y)


def _same_elements(x: Any, y: Any) -> bool:
    return {*map(freeze, x)} == {*map(freeze, y)}


_by_parts: dict[Any, Callable[[Any, Any], bool]] = {
    tuple.__eq__: _same_items,
    list.__eq__: _same_items,
    dict.__eq__: _same_entries,
    OrderedDict.__eq__: _same_in_order,
    set.__eq__: _same_elements,
}
"""Comparisons of containers of equal length, by the == that their class has."""


# ---- how values of a class are frozen ------------------------------------------------------------


class _How(dict[type, Callable[[Any], Hashable] | None]):
    """{class: function} that makes the part of a key beside the class; None if the value itself,
    known to be hashable, is that part."""

    def __missing__(self, kind: type) -> Callable[[Any], Hashable] | None:
        self[kind] = how = _how_to_freeze(kind)
        return how


def _how_to_freeze(kind: type) -> Callable[[Any], Hashable] | None:
    if kind.__hash__ is None:  # by `_hashed`, which raises
        return _hashed
    if issubclass(kind, np.generic):
        return _hashed if issubclass(kind, np.flexible) else _scalar
    if issubclass(kind, float):
        return _and_itself(kind, float, bits_of)
    if issubclass(kind, complex):
        return _and_itself(kind, complex, lambda x: struct.pack("dd", x.real, x.imag))
    if issubclass(kind, Decimal):
        return _and_itself(kind, Decimal, lambda x: x.as_tuple())
    if issubclass(kind, frozenset):
        return _and_itself(kind, frozenset, lambda x: frozenset([freeze(v) for v in x]))
    parts = _parts(kind)
    if parts is not None:
        return lambda x: tuple([freeze(v) for v in parts(x)])
    return None if kind in _EXACT else _hashed


def _and_itself(kind: type, base: type, key: Callable[[Any], Hashable]) -> Callable[[Any], Any]:
    """Return the function that freezes instances of a subclass of `base`; the subclass's own ==, if
    it has one, counts too."""
    if kind.__eq__ is base.__eq__:
        return key
    return lambda x: (key(x), _hashed(x))


def _hashed(x: object) -> Hashable:
    hash(x)
    return x


def _scalar(x: np.generic) -> Hashable:
    # The text contains all digits, and long doubles have undefined padding bytes.
    return (x.dtype.str, repr(x)) if x.dtype.char in "gG" else (x.dtype.str, x.tobytes())


def _parts(kind: type) -> Callable[[Any], tuple[Any, ...]] | None:
    """Return the function from a value to the parts that == compares; None if it is unknown."""
    if issubclass(kind, tuple):
        return tuple if kind.__eq__ is tuple.__eq__ else None
    if kind in (slice, range):
        return attrgetter("start", "stop", "step")
    # Generated functions are compiled from a text, whose name identifies the generator.
    file = getattr(getattr(kind.__eq__, "__code__", None), "co_filename", "")
    if is_dataclass(kind) and file == "<string>":
        names = [f.name for f in fields(kind) if f.compare]
    elif hasattr(kind, "__attrs_attrs__") and file.startswith("<attrs generated"):
        every = kind.__attrs_attrs__
        if any(a.eq_key is not None for a in every):
            return None
        names = [a.name for a in every if a.eq]
    else:
        return None
    return lambda x: tuple([getattr(x, name) for name in names])


_EXACT = frozenset((int, bool, str, bytes, NoneType, type, FunctionType, BuiltinFunctionType))
"""Classes of hashable values that are equal only if they cannot be distinguished."""

_how = _How()


# ---- where others compare ------------------------------------------------------------------------


_UNMADE: Any = object()


class Exact:
    """A value whose == is `same`, for keys that another library compares.

    Comparing it with an unwrapped value that is alike is True, too.
    """

    __slots__ = ("value", "key", "made_hash")
    __array_ufunc__ = None  # a numpy scalar on the left leaves the comparison to this class

    def __init__(self, value: Any):
        self.value = value
        self.key = _UNMADE
        self.made_hash: int | None = None

    def __eq__(self, other: object) -> bool:
        x = self.value
        if other.__class__ is not Exact:
            return same(x, other)
        y: Any = other.value  # type: ignore[attr-defined]
        if x is y:
            return True
        if x.__class__ is not y.__class__:
            return False
        if x.__class__ is tuple and len(x) == len(y) and all(map(is_, x, y)):
            return True
        # One value is compared with many: jaxlib leaves static parts out of hashes.
        mine, its = self.frozen(), other.frozen()  # type: ignore[attr-defined]
        return same(x, y) if mine is None or its is None else bool(mine == its)

    def frozen(self) -> Hashable:
        """Return the key of the value, made once; None if it cannot be hashed."""
        if self.key is _UNMADE:
            try:
                self.key = freeze(self.value)
            except TypeError:
                self.key = None
        return self.key

    def __hash__(self) -> int:
        found = self.made_hash
        if found is None:
            found = self.made_hash = hash(self.value)
        return found

    def __repr__(self) -> str:
        return repr(self.value)

    def __reduce__(self) -> Any:
        return Exact, (self.value,)


class _WithClasses(tuple[Any, Any]):
    """(values, their classes): compares by == as `same` compares the values, and in less time."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(self[0])


def exact(x: Any) -> Any:
    """Return a value whose == is `same`: itself if Python's == agrees with `same`, else wrapped.

    A wrapped value is returned as it is.  Keeping it saves making its key again.
    """
    if x.__class__ in PLAIN or x.__class__ is Exact:
        return x
    if x.__class__ is not tuple:
        return Exact(x)
    kinds = tuple(map(type, x))
    floats = _tuples[kinds]
    if floats is _AS_IT_IS:
        return x
    if floats is _IN_WHOLE:
        return Exact(x)
    for i in floats:  # == of floats agrees with `same`, except for zeros and nan
        v = x[i]
        if not v or v != v:
            return Exact(x)
    return _WithClasses((x, kinds))


def bare(x: Any) -> Any:
    """Return the value that `exact` was given."""
    kind = x.__class__
    return x.value if kind is Exact else x[0] if kind is _WithClasses else x


PLAIN = _EXACT - {bool}
"""Classes of values that `exact` returns as they are.  Without bool, two values that are equal but
not alike always include one of another class."""
_AS_IT_IS, _IN_WHOLE = None, "in whole"


class _Tuples(dict[tuple[type, ...], Any]):
    """{classes: how to make tuples of such values exact}: the positions of floats, if classes and
    floats are all that == does not distinguish; else _AS_IT_IS or _IN_WHOLE."""

    def __missing__(self, kinds: tuple[type, ...]) -> Any:
        others = frozenset(kinds) - PLAIN
        how: Any = _AS_IT_IS
        if others:
            floats = tuple([i for i, kind in enumerate(kinds) if kind is float])
            how = floats if others <= {bool, float} else _IN_WHOLE
        if len(self) < 4096:  # bounds the memory for programs that keep creating classes
            self[kinds] = how
        return how


_tuples = _Tuples()
