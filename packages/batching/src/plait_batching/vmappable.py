"""Classes whose values are mapped in their own way: `register_vmappable`.

Invariant: a class is registered once; only vmap uses the registration, and tree functions treat the
values as leaves.
"""

from collections.abc import Callable, Sequence
from functools import partial
from types import CodeType
from typing import Any, NamedTuple
from weakref import WeakSet

from plait.errors import RegistrationError
from plait.ext.errors import ArgumentError
from plait.ext.ops.shape import iota_
from plait.ext.trace import Value, code_of, enter, leave
from plait.ext.types import INT32
from plait.ext.values import as_value

from .axes import added_kind, lifted, removed_kind, taken
from .interpreter import Batch

__all__ = [
    "data_leaf", "has_data", "is_vmappable", "register_vmappable", "returns_data",
    "unregister_vmappable",
]  # fmt: skip


class Vmappable(NamedTuple):
    """Functions that map the values of one class."""

    spec_type: type
    axis_size_type: type
    to_elt: Callable[..., Any]
    from_elt: Callable[..., Any]
    make_iota: Callable[[Any], Any] | None


_known: dict[type, Vmappable] = {}


def data_leaf() -> Callable[[Any], bool] | None:
    """Return the predicate that makes values of registered classes leaves; None without classes."""
    return is_vmappable if _known else None


_returning: WeakSet[CodeType] = WeakSet()
"""The code of functions that returned values of registered classes."""


def has_data(leaves: Sequence[Any], f: Callable[..., Any]) -> bool:
    """Return whether a call has values of registered classes among its leaves, or returned some
    when it was called before."""
    if not _known:
        return False
    return code_of(f) in _returning or any(map(is_vmappable, leaves))


def returns_data(outs: Sequence[Any], f: Callable[..., Any]) -> bool:
    """Return whether there are values of registered classes among results, and keep it for
    `has_data`."""
    if not _known or not any(map(is_vmappable, outs)):
        return False
    if (code := code_of(f)) is not None:
        _returning.add(code)
    return True


def is_vmappable(x: object) -> bool:
    """Return whether the class of `x` is registered by `register_vmappable`.

    >>> import plait
    >>> plait.is_vmappable(plait.numpy.ones(3))
    False
    """
    return type(x) in _known


def register_vmappable(
    data_type: type,
    spec_type: type,
    axis_size_type: type = int,
    to_elt: Callable[..., Any] | None = None,
    from_elt: Callable[..., Any] | None = None,
    make_iota: Callable[[Any], Any] | None = None,
) -> None:
    """Register a class whose values `vmap` maps, with a class of entries for in_axes and out_axes.

    The class need not be a tree, and does not become one.  Only vmap takes its values apart, where
    in_axes has an entry of type `spec_type`, and builds them where out_axes has one.

    Args:
      data_type: the class.
      spec_type: the class of entries of in_axes and out_axes; several data types may share one.
        int: the values are mapped by positions, as arrays are.
      axis_size_type: the type of the sizes that it is mapped over.
      to_elt: `to_elt(cont, get_idx, x, spec)` returns one element of `x`, the argument of the
        mapped function.  `cont(y, axis)` returns an element of a component `y` of `x`, mapped along
        an axis or by another spec; `get_idx()` returns the index of the element.  None:
        `x.to_elt(cont, get_idx, spec)`.
      from_elt: `from_elt(cont, axis_size, elt, spec)` returns the whole value, given its element
        `elt`, a value of `data_type` that the mapped function returned.  `cont(axis_size, y, axis)`
        returns the whole of a component `y` of it.  None: `elt.from_elt(cont, axis_size, spec)`.
      make_iota: `make_iota(axis_size)` returns the array of all indices, for `get_idx`; by default
        0, 1, 2, ..., of int32.

    The size of the mapped axis comes from another argument, from vmap's `axis_size`, or from a
    method `axis_size(spec)` of the class.

    Raises RegistrationError if the class is registered already.  Raises ArgumentError for classes
    that cannot be entries, or that have neither function nor method.

    >>> import plait
    >>> class Named:
    ...     def __init__(self, names, data):
    ...         self.names, self.data = names, data
    ...     def to_elt(self, cont, get_idx, spec):
    ...         return Named([n for n in self.names if n != spec.name], cont(self.data, spec.axis))
    ...     def from_elt(self, cont, axis_size, spec):
    ...         names = [*self.names[: spec.axis], spec.name, *self.names[spec.axis :]]
    ...         return Named(names, cont(axis_size, self.data, spec.axis))
    >>> class Along:
    ...     def __init__(self, name, axis):
    ...         self.name, self.axis = name, axis
    >>> plait.register_vmappable(Named, Along)
    >>> x = Named(["i", "j"], plait.numpy.ones((3, 2)))
    >>> y = plait.vmap(lambda v: v, Along("i", 0), Along("i", 1), axis_size=3)(x)
    >>> y.names, y.data.shape
    (['j', 'i'], (2, 3))
    >>> plait.unregister_vmappable(Named)
    """
    for what, given in (("data_type", data_type), ("spec_type", spec_type)):
        if not isinstance(given, type):
            raise ArgumentError(
                f"register_vmappable: {what} is {given!r}, which is not a class", fix="pass a class"
            )
    if data_type in _known:
        raise RegistrationError(
            f"{data_type.__qualname__} is registered already, as mapped by "
            f"{_known[data_type].spec_type.__qualname__}",
            fix="register it once, or unregister_vmappable it first",
        )
    if issubclass(data_type, Value | bool | int | float | complex):
        raise ArgumentError(
            f"values of {data_type.__qualname__} are arrays, which are mapped along axes",
            fix="register a class of your own",
        )
    ways = [("to_elt", to_elt), ("from_elt", from_elt)]
    for name, given in ways:
        if not callable(given) and not (given is None and hasattr(data_type, name)):
            raise ArgumentError(
                f"register_vmappable: {data_type.__qualname__} has no method {name!r}, and "
                f"{name}={given!r} was given",
                fix=f"pass {name}=, or give the class such a method",
            )
    added_kind(spec_type, KIND, data_type)
    _known[data_type] = Vmappable(
        spec_type,
        axis_size_type,
        to_elt or (lambda cont, get_idx, x, spec: x.to_elt(cont, get_idx, spec)),
        from_elt or (lambda cont, axis_size, elt, spec: elt.from_elt(cont, axis_size, spec)),
        make_iota,
    )


def unregister_vmappable(data_type: type) -> None:
    """Undo `register_vmappable`; other classes that share its spec_type stay registered.

    Raises RegistrationError if the class is not registered.
    """
    gone = _known.pop(data_type, None)
    if gone is None:
        raise RegistrationError(
            f"{getattr(data_type, '__qualname__', data_type)} is not registered",
            fix="unregister what register_vmappable was told, once",
        )
    is_last = all(v.spec_type is not gone.spec_type for v in _known.values())
    removed_kind(gone.spec_type, data_type, is_last)


# ---- use by vmap ---------------------------------------------------------------------------


def _index(batch: Batch, make: Callable[[Any], Any] | None) -> Any:
    """Return the index of an element: made on first use, once per map."""
    made = batch.indices = batch.indices or {}
    if make not in made:
        token = enter(batch.parent)  # type: ignore[arg-type]
        try:
            if make is None:
                every = iota_.bind(shape=(batch.size,), axis=0, dtype=INT32)
            else:
                every = as_value(make(batch.size))
        finally:
            leave(token)
        made[make] = lifted(batch, every, 0)
    return made[make]


class _Registered:
    """The kind of entries that map values of registered classes."""

    def of(self, x: object, spec: int, told: str) -> Vmappable:
        found = _known.get(type(x))
        if found is None or found.spec_type is not type(spec):
            fit = [c.__qualname__ for c, v in _known.items() if v.spec_type is type(spec)]
            raise ArgumentError(
                f"vmap: {told} is said to be mapped by {spec!r}, which is for values of "
                f"{', '.join(fit)}, and it is {_named(x)}",
                fix="give the position of an axis for arrays, and None for what does not vary"
                if found is None
                else f"give it an entry of type {found.spec_type.__qualname__}",
            )
        return found

    def size(self, x: object, spec: int) -> Any:
        self.of(x, spec, "an argument")
        ask = getattr(x, "axis_size", None)
        return ask(spec) if callable(ask) else None

    def lift(self, batch: Batch, x: object, spec: int) -> Any:
        found = self.of(x, spec, "a value")
        if found.axis_size_type is not int and not isinstance(batch.size, found.axis_size_type):
            raise ArgumentError(
                f"vmap over {batch.size!r} elements: values of {type(x).__qualname__} are mapped "
                f"over sizes of type {found.axis_size_type.__qualname__}",
                fix="pass such an axis_size",
            )
        return found.to_elt(
            partial(lifted, batch), partial(_index, batch, found.make_iota), x, spec
        )

    def take(self, batch: Batch, x: object, spec: int, told: Callable[[], str]) -> Any:
        found = self.of(x, spec, f"result{told()}")
        cont = lambda axis_size, elt, axis: taken(batch, elt, axis, told)  # noqa: E731
        return found.from_elt(cont, batch.size, x, spec)


def _named(x: object) -> str:
    return repr(x.aval) if isinstance(x, Value) else f"a {type(x).__qualname__}"


KIND = _Registered()
