"""`sparsify(f)`: apply a function of arrays to sparse arrays.

A sparse value is carried as its components.  The rules are in the table `sparsify`; core carries
the values through calls, branches, loops and derivatives.

Invariant: a value never becomes dense silently, except where the forms of a branch or of a carry
cannot agree, and where `todense` says so.
"""

from collections.abc import Callable, Sequence
from typing import Any

import plait
from plait import ext
from plait.ext.errors import OperandTypeError, border
from plait.ext.trace import Value, wraps
from plait.ext.types import Aval
from plait.typing import Array, ArrayLike

from .base import JAXSparse
from .bcoo import BCOO
from .conversion import densified, sparsified
from .entries import Entries, rebuilt
from .layout import DENSE, Layout, array_of, layout_of, positions_of, types_of
from .structure import lengthened

__all__ = ["sparsify", "sparsify_rules", "todense"]

sparsify_rules = ext.RuleTable(
    "sparsify",
    signature="(*args, **params)",
    doc="the operation on sparse arrays: operands are a BCOO or dense.",
)


def _todense(x: Aval) -> Any:
    """Return the value; under `sparsify` the result is dense."""
    return x


todense_p = ext.Primitive("sparse.todense", _todense, traits=(ext.Linear, ext.AnyElement))
ext.expand_rules.rule(todense_p)(lambda x: x)


class Sparse(ext.Carrier):
    """Carries the values and the indices of sparse arrays."""

    rules, does = sparsify_rules, "sparsify"
    commutes, loses = frozenset(("mapping",)), frozenset(("derivative",))

    def whole(self, aval: Aval) -> Any:
        """Return the form that every value can be brought to."""
        return DENSE

    def least(self, aval: Aval) -> Any:
        """Return the form of a plain value where it meets a sparse one."""
        return DENSE

    def part_avals(self, aval: Aval, form: Layout | str) -> tuple[Any, ...]:
        """Return the types of the components."""
        return types_of(aval, form)

    def part_axes(self, aval: Aval, form: Layout | str) -> tuple[tuple[int | None, ...], ...]:
        """Return the positions of the axes in the components."""
        return positions_of(aval, form)

    def join(self, aval: Aval, f: Any, g: Any) -> Any:
        """Return the least form that two forms can be brought to."""
        return DENSE if DENSE in (f, g) else f.meet(g)

    def widen(self, aval: Aval, f: Layout, g: Layout) -> Any:
        """Return a form above all others, for a number of entries that grows in a loop."""
        return DENSE

    def coerce(
        self, aval: Aval, parts: tuple[Any, ...], f: Layout | None, g: Any
    ) -> tuple[Any, ...]:
        """Return components in another form."""
        if f is None or f == DENSE:
            if g == DENSE:
                return parts
            found = sparsified(BCOO, parts[0], g.nse, g.n_batch, g.n_dense, g.index_dtype)
            return found.data, found.indices
        x = array_of(aval, f, parts)
        if g == DENSE:
            return (densified(x),)
        x = lengthened(rebuilt(x, None, x.indices.astype(g.index_dtype)), g.nse)
        return x.data, x.indices

    def grow(self, form: Any, axis: int, aval: Aval | None = None) -> Any:
        """Return the form of a stack along a new axis."""
        if form == DENSE or axis > form.n_batch:
            return DENSE
        return form._replace(n_batch=form.n_batch + 1)

    def drop(self, form: Layout, axis: int, aval: Aval | None = None) -> Any:
        """Return the form of a row along an axis."""
        if form == DENSE or axis >= form.n_batch:
            return DENSE
        return form._replace(n_batch=form.n_batch - 1)

    def cut(self, form: Any, axis: int, aval: Any = None) -> Any:
        """Return the form of a piece along an axis, or of the whole of such pieces."""
        if form == DENSE or axis < form.n_batch or axis >= aval.ndim - form.n_dense:
            return form
        return DENSE

    def shown(self, x: Any) -> Any:
        """Return the dense value, which `debug.print` prints."""
        return self.to_form(x, DENSE)[0]

    def operand(self, x: Value) -> Any:
        """Return a value as rules get it: a BCOO or a dense value."""
        form, parts = self.split(x)
        if form is None or form == DENSE:
            return parts[0]
        return array_of(x.aval, form, parts)

    def carried(self, x: Value | BCOO) -> Any:
        """Return the result of a rule as a value of this transformation."""
        if not isinstance(x, Entries):
            return x
        data, indices = ext.as_value(x.data), ext.as_value(x.indices)
        return self.lift(data.aval.with_shape(x.shape), layout_of(x), (data, indices))

    def run(self, prim: Any, rule: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Apply a rule; an operation on dense operands only is applied as it is."""
        given = [self.operand(a) for a in args]
        if not any(isinstance(a, Entries) for a in given):
            return prim.bind(*given, **params)
        out = rule(*given, **params)
        return [self.carried(o) for o in out] if prim.many else self.carried(out)


@border
def todense(arr: JAXSparse | ArrayLike) -> Array:
    """Return the dense array of a sparse one; an array is returned as it is.

    In a function under `sparsify` the value is dense from here on.

    >>> import plait
    >>> plait.sparse.todense(plait.sparse.eye(2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if isinstance(arr, JAXSparse):
        return arr.todense()
    return todense_p.bind(ext.as_value(arr))


def _is_sparse(x: object) -> bool:
    return isinstance(x, JAXSparse)


@border
def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """Return a function that applies `f`, a function of arrays, to sparse arrays.

    Results that are sparse are a BCOO.  Operations that would make a sparse value dense are
    refused: call `plait.sparse.todense` in `f` where that is meant.

    Args:
      f: a function of trees of arrays.
      use_tracer: accepted for compatibility; both values give the same results.

    Raises:
      MissingRule: an operation without a rule for sparse operands.
      OperandTypeError: an operation whose result would be dense.

    >>> import plait
    >>> x = plait.sparse.BCOO.fromdense([[0.0, 3.0], [1.0, 0.0]])
    >>> plait.sparse.sparsify(lambda x, v: plait.numpy.sin(x.T) @ v)(x, plait.numpy.ones(2))
    Array([0.84147, 0.14112], dtype=float32)
    """

    @wraps(f)
    @border
    def applied(*args: object, **kwargs: object) -> Any:
        leaves, tree = plait.tree.flatten((args, kwargs), is_leaf=_is_sparse)
        carrier = Sparse(ext.current(), of=f)
        with ext.opened(carrier):
            lifted = [carrier.carried(x._entries()) if _is_sparse(x) else x for x in leaves]
            args, kwargs = plait.tree.unflatten(tree, lifted)
            outs, shape = plait.tree.flatten(f(*args, **kwargs), is_leaf=_is_sparse)
        return plait.tree.unflatten(shape, [_result(carrier, o) for o in outs])

    return applied


def _result(carrier: Sparse, x: object) -> Any:
    """Return a result as the caller sees it."""
    if _is_sparse(x):
        leaves, tree = plait.tree.flatten(x)
        if any(carrier.form_of(v) not in (None, DENSE) for v in leaves):
            raise OperandTypeError(
                "a function under sparsify returned a sparse array whose values or indices are "
                "sparse themselves",
                fix="make them dense by plait.sparse.todense",
            )
        return plait.tree.unflatten(tree, [carrier.operand(v) for v in leaves])
    return carrier.operand(x) if isinstance(x, ext.Lifted) else x
