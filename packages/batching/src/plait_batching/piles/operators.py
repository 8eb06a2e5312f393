"""Arithmetic and properties of a pile of arrays, as if it were one array.

The first axis is that of the elements, and the axes of an element follow: a pile of matrices [n, 3]
is [elements, n, 3].  Other operands are piles of equal lengths, numbers, arrays that each element
is combined with, or arrays with an axis of elements in front.

Invariant: each operation is a map over the elements.
"""

import operator
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

import plait
import plait.numpy as pnp
from plait.ext.errors import NotAnArrayError, border
from plait.ext.ops.shape import normal_axis
from plait.ext.trace import Value

from .axis import pile_axis
from .elementwise_names import ELEMENTWISE
from .reductions import reduced

if TYPE_CHECKING:
    from .pile import Pile

__all__ = ["PileOperators", "is_pile"]

_LIBRARIES = ("plait.", "plait_numpy.")
"""Modules of the functions that take piles."""

_RANDOM = "plait_numpy.random"
"""Module of functions that share names with special functions, such as `gamma`."""

_REDUCTIONS = ("sum", "prod", "max", "min", "mean", "var", "std", "any", "all")


class PileOperators:
    """Operators and methods of piles whose elements are arrays, or piles of them."""

    __slots__ = ()
    __array_ufunc__ = None  # numpy's arrays leave operators to the pile

    def __plait_function__(
        self, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[Any, Any]
    ) -> Any:
        """Return `f(*args, **kwargs)` for functions of the array library that apply to piles."""
        name = f.__name__
        if not f.__module__.startswith(_LIBRARIES) or f.__module__.startswith(_RANDOM):
            return NotImplemented  # a function of this class, or of a user, that has such a name
        if name.endswith("_like") and (kwargs.get("shape") or args[2 + (name == "full_like") :]):
            return f(np.zeros((), self.dtype), *args[1:], **kwargs)  # of another shape
        if name.removeprefix("_") in ELEMENTWISE:  # `_gelu` is the body of `gelu`
            return _of_elements(f, args, kwargs)
        if name in _REDUCTIONS and args and args[0] is self:
            return getattr(self, name)(*args[1:], **kwargs)
        if name == "concatenate":
            return joined(*args, **kwargs)
        return NotImplemented

    def _mapped(self, f: Callable, *others: Any) -> Any:
        return _mapped(f, self, *others)

    def _reduced(self, name: str, axis: Any, options: dict) -> Any:
        _type(self)
        return reduced(name, self, axis, options)

    # ---- properties

    @property
    def shape(self) -> tuple[Any, ...]:
        """The number of elements, and the shape of one, in which sizes that differ have names."""
        return (len(self), *_type(self).shape)  # type: ignore[arg-type]

    @property
    def ndim(self) -> int:
        return _type(self).ndim + 1

    @property
    def dtype(self) -> Any:
        return _type(self).dtype

    @border
    def astype(self, dtype: object) -> Any:
        """Return the pile with its rows converted to a dtype.

        >>> import plait
        >>> plait.Pile.from_list([[1, 2], [3]]).astype("float32")
        Pile([[1. 2.], [3.]], f32[n0])
        """
        return _mapped(lambda x: x.astype(dtype), self)

    # ---- reductions

    @border
    def sum(self, axis: object = None, **options: object) -> Any:
        """Sum over axes: None for all of them, 0 for the elements, 1 for the first axis of each,
        or `plait.pile_axis` for the axes in which elements differ.

        >>> import plait
        >>> p = plait.Pile.from_list([[1.0, 2.0], [3.0]])
        >>> p.sum(axis=1), p.sum()
        (Array([3., 3.], dtype=float32), Array(6., dtype=float32))
        """
        return self._reduced("sum", axis, options)

    @border
    def prod(self, axis: object = None, **options: object) -> Any:
        """Multiply over axes; see `sum`."""
        return self._reduced("prod", axis, options)

    @border
    def max(self, axis: object = None, **options: object) -> Any:
        """Return the greatest over axes; see `sum`."""
        return self._reduced("max", axis, options)

    @border
    def min(self, axis: object = None, **options: object) -> Any:
        """Return the least over axes; see `sum`."""
        return self._reduced("min", axis, options)

    @border
    def any(self, axis: object = None, **options: object) -> Any:
        """Return whether any is true over axes; see `sum`."""
        return self._reduced("any", axis, options)

    @border
    def all(self, axis: object = None, **options: object) -> Any:
        """Return whether all are true over axes; see `sum`."""
        return self._reduced("all", axis, options)

    @border
    def mean(self, axis: object = None, **options: object) -> Any:
        """Average over axes; see `sum`."""
        return self._reduced("mean", axis, options)

    @border
    def var(self, axis: object = None, **options: object) -> Any:
        """Return the variance over axes; see `sum`."""
        return self._reduced("var", axis, options)

    @border
    def std(self, axis: object = None, **options: object) -> Any:
        """Return the standard deviation over axes; see `sum`."""
        return self._reduced("std", axis, options)


def _type(p: Any) -> Any:
    """Return the type of an element; raise NotAnArrayError if elements are trees or piles."""
    if p._tree.num_leaves != 1 or p._tree.node_data() is not None:
        raise NotAnArrayError(
            f"the elements of a pile, {', '.join(map(repr, p._types))}, are trees, not arrays",
            fix="map over it, vmap(f, in_axes=plait.pile_axis), or use plait.tree.map",
        )
    ((_, t),) = p._columns()
    return t


def is_pile(x: object) -> bool:
    """Return whether `x` is a pile."""
    return isinstance(x, PileOperators)


def _mapped(f: Callable, *xs: Any) -> Any:
    """Return `f` of corresponding elements."""
    first: Any = next(x for x in xs if is_pile(x))
    data = first._tree.node_data()
    if data is not None and not issubclass(data[0], PileOperators):
        _type(first)  # raises
    axes = [pile_axis if is_pile(x) else _axis_beside(x, first) for x in xs]
    out = plait.vmap(f, tuple(axes), pile_axis)(*xs)
    return tuple(map(_settled, out)) if out.__class__ is tuple else _settled(out)


def _of_elements(f: Callable, args: tuple, kwargs: dict) -> Any:
    """Return `f` of corresponding elements of the piles among its arguments."""
    named = [k for k, x in kwargs.items() if is_pile(x)]
    others = {k: x for k, x in kwargs.items() if k not in named}
    count = len(args)

    def of_one(*xs: Value) -> Any:
        return f(*xs[:count], **dict(zip(named, xs[count:], strict=True)), **others)

    return _mapped(of_one, *args, *[kwargs[k] for k in named])


def _axis_beside(x: Any, p: "Pile") -> int | None:
    """Return 0 for an array with an axis of elements, and None for one that all elements share."""
    if not isinstance(x, Value | np.ndarray | np.generic) or p._tree.node_data() is not None:
        return None
    return 0 if x.ndim == p.ndim else None


def _settled(p: "Pile") -> Any:
    """Return an array in place of a pile whose elements have one shape."""
    if is_pile(p) and p._tree.node_data() is None and not p._axes(_type(p)):
        return p.data
    return p


@border
def joined(arrays: Any, axis: Any = 0, dtype: Any = None) -> Any:
    """Return piles that are joined: one batch after the other, or along an axis of elements."""
    xs = list(arrays)
    if not all(map(is_pile, xs)):
        raise NotAnArrayError(
            "concatenate of piles and arrays", fix="make piles of all of them: plait.Pile"
        )
    if axis == 0:
        out = xs[0]._joined(xs)
        return out if dtype is None else out.astype(dtype)
    at = normal_axis(axis, xs[0].ndim, "concatenate") - 1
    return _mapped(lambda *es: pnp.concatenate(es, axis=at, dtype=dtype), *xs)


def _binary(f: Callable) -> tuple[Callable, Callable]:
    def operand(x: Any) -> bool:
        return is_pile(x) or isinstance(x, Value | np.ndarray | np.generic | int | float | complex)

    @border
    def forward(self: Any, other: Any) -> Any:
        if f is operator.pow and other.__class__ is int:
            # A product of factors; with the exponent as an argument it would be a general power.
            return _mapped(_power_of(other), self)
        return _mapped(f, self, other) if operand(other) else NotImplemented

    @border
    def backward(self: Any, other: Any) -> Any:
        return _mapped(f, other, self) if operand(other) else NotImplemented

    return forward, backward


@lru_cache(64)
def _power_of(exponent: int) -> Callable:
    return lambda x: x**exponent


def _unary(f: Callable) -> Callable:
    return border(lambda self: _mapped(f, self))


# fmt: off
_BINARY = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "matmul", "lshift",
    "rshift", "and", "or", "xor",
)
# fmt: on


def _equip() -> None:
    """Give the class the operators that Python has methods for."""
    for name in _BINARY:
        f = divmod if name == "divmod" else getattr(operator, f"__{name}__")
        forward, backward = _binary(f)
        setattr(PileOperators, f"__{name}__", forward)
        setattr(PileOperators, f"__r{name}__", backward)
    for name in ["lt", "le", "gt", "ge"]:
        setattr(PileOperators, f"__{name}__", _binary(getattr(operator, name))[0])
    for name in ["neg", "pos", "abs", "invert"]:
        setattr(PileOperators, f"__{name}__", _unary(getattr(operator, name)))


_equip()
