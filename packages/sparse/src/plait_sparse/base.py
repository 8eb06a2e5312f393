"""Operators and methods that all sparse arrays share.

Invariant: operators use the entries of both operands only, so that each class defines its
operations once.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import plait.numpy as pnp
from plait import ext
from plait.ext.errors import OperandTypeError, border
from plait.typing import ArrayLike

from .arithmetic import added, converted, dense_refused, divided, mapped, multiplied, raised
from .conversion import densified
from .entries import Entries
from .products import matmul
from .structure import reshaped, summed, transposed
from .subscripts import subscripted

if TYPE_CHECKING:
    from .bcoo import BCOO

__all__ = ["JAXSparse"]

_NUMBERS = (ext.Value, np.ndarray, np.generic, bool, int, float, complex)


class JAXSparse:
    """Base of all sparse arrays: a tree of arrays that acts as an array."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None  # so that `ndarray @ x` is the operator of this class

    # -- methods for subclasses ------------------------------------------------------------

    _entries: Callable[[], Any]
    """Returns this array as coordinates; each class defines it."""

    def _like(self, out: "BCOO") -> Any:
        """Return a result that has the entries of this array, in this array's class."""
        return out

    def axis_size(self, axis: int) -> int:
        """Return the size of an axis; `vmap` calls it."""
        x: Any = self
        return x.shape[axis]

    # -- properties ------------------------------------------------------------------------

    @property
    def T(self) -> Any:
        """The array with its axes reversed."""
        return self.transpose()

    def __repr__(self) -> str:
        e = self._named()
        return f"{type(self).__name__}({e})"

    def _named(self) -> str:
        """Return the type of the array as text."""
        x: Any = self
        try:
            sizes = ", ".join(map(str, x.shape))
            extra = "".join(
                f", {n}={getattr(x, n)}" for n in ("n_batch", "n_dense") if getattr(x, n)
            )
            return f"{x.dtype}[{sizes}], nse={x.nse}{extra}"
        except Exception:  # a tree of things that are not arrays
            return f"data={x.data!r}, indices={x.indices!r}"

    def __plait_function__(self, function: object, args: object, kwargs: object) -> Any:
        """Refuse to be an operand of a function of arrays; name the function that takes it."""
        name = getattr(function, "__name__", "the function")
        raise OperandTypeError(
            f"{name} expected arrays, got a {type(self).__name__}",
            fix=f"write plait.sparse.sparsify({name})(x), or {name}(x.todense())",
        )

    # -- operators -------------------------------------------------------------------------

    def _operand(self, y: object) -> Any:
        """Return the other operand; NotImplemented for one of no use."""
        if isinstance(y, JAXSparse):
            return y._entries()
        return y if isinstance(y, _NUMBERS) else NotImplemented

    def _apply(
        self, function: Callable[..., Any], y: object, swap: bool = False, same: bool = False
    ) -> Any:
        """Return an operator's result."""
        other = self._operand(y)
        if other is NotImplemented:
            return NotImplemented
        x = self._entries()
        out = function(other, x) if swap else function(x, other)
        return self._as_own(out, x) if same else out

    def _as_own(self, out: "BCOO", x: "BCOO") -> Any:
        """Return a result in this array's class, if it has the very entries `x` of this array."""
        same = isinstance(out, Entries) and out.indices is x.indices
        return self._like(out) if same else out

    def _mapped(self, function: Callable[..., Any], is_linear: bool = False) -> Any:
        """Return a function of each element that maps zero to zero."""
        x = self._entries()
        return self._as_own(mapped(x, function, is_linear), x)

    @border
    def __matmul__(self, y: object) -> Any:
        return self._apply(matmul, y)

    @border
    def __rmatmul__(self, y: object) -> Any:
        return self._apply(matmul, y, swap=True)

    @border
    def __mul__(self, y: object) -> Any:
        return self._apply(multiplied, y, same=True)

    @border
    def __rmul__(self, y: object) -> Any:
        return self._apply(multiplied, y, swap=True, same=True)

    @border
    def __truediv__(self, y: object) -> Any:
        return self._apply(divided, y, same=True)

    @border
    def __rtruediv__(self, y: object) -> Any:
        return self._apply(divided, y, swap=True)

    @border
    def __add__(self, y: object) -> Any:
        return self._apply(added, y)

    @border
    def __radd__(self, y: object) -> Any:
        return self._apply(added, y, swap=True)

    @border
    def __sub__(self, y: object) -> Any:
        return self._apply(_difference, y)

    @border
    def __rsub__(self, y: object) -> Any:
        return self._apply(_difference, y, swap=True)

    @border
    def __pow__(self, power: object) -> Any:
        x = self._entries()
        return self._as_own(raised(x, power), x)

    @border
    def __neg__(self) -> Any:
        return self._mapped(lambda v: -v, is_linear=True)

    def __pos__(self) -> Any:
        return self

    @border
    def __abs__(self) -> Any:
        return self._mapped(abs)

    @border
    def __getitem__(self, index: object) -> Any:
        return subscripted(self._entries(), index)

    @border
    def __len__(self) -> int:
        shape = self._entries().shape
        if not shape:
            raise OperandTypeError("len() of a sparse array without axes", fix="use x.todense()")
        return int(shape[0])

    @border
    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    @border
    def __bool__(self) -> bool:
        raise OperandTypeError(
            "the truth of a sparse array is ambiguous", fix="use x.todense().any() or .all()"
        )

    def _compared(self, y: ArrayLike) -> Any:
        raise dense_refused("a comparison")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = border(_compared)  # type: ignore

    # -- methods ---------------------------------------------------------------------------

    @border
    def todense(self) -> Any:
        """Return the dense array."""
        return densified(self._entries())

    @border
    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """Return the array with its axes in another order, by default reversed."""
        return transposed(self._entries(), axes)

    @border
    def astype(self, dtype: object) -> Any:
        """Return the array with another dtype."""
        x = self._entries()
        return self._as_own(converted(x, dtype), x)

    @border
    def reshape(self, *shape: Any) -> Any:
        """Return the array in another shape."""
        sizes = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        return reshaped(self._entries(), sizes)

    @border
    def sum(self, axis: object = None, keepdims: bool = False) -> Any:
        """Return the sum over axes: sparse, or a dense scalar if it is over all."""
        x = self._entries()
        axes = ext.ops.shape.normal_axes(axis, x.ndim)
        out = summed(x, axes)
        if keepdims:
            out = reshaped(out, [1 if k in axes else n for k, n in enumerate(x.shape)])
        return out if out.ndim else densified(out)

    def block_until_ready(self) -> Any:
        """Wait until the arrays are computed; return this array."""
        for leaf in ext.flatten(self)[0]:
            leaf.block_until_ready()
        return self


def _difference(x: "np.ndarray | BCOO", y: "BCOO") -> Any:
    """Return x - y."""
    minus = mapped(y, lambda v: -v, is_linear=True) if isinstance(y, Entries) else -pnp.asarray(y)
    return added(x, minus)
