"""x[index] and x.at[index]: numpy indexing, and its counterpart that writes.

Invariant: while nothing is traced, positions are operands and never part of a compiled program, so
that a loop over `x[i]` compiles once.  Under a trace, fixed positions become a plain slice.
"""

import array
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from .._base import jaxlib_api
from .._base.errors import ArgumentError
from .._base.freezing import freeze
from .._base.lazy import later
from .._base.tracebacks import border, leaving
from .._core.array import Array, Literal, as_value, failure, integer_bounds, wrap
from .._core.interpreter import GROUND, Tracer, Value, current, use
from .._core.staging import staged
from .._types.avals import BOOL, INT32, INTEGER, NOTHING, OPAQUE, Aval, nothing_to_do
from .._types.dims import product
from .._xla.executables import executable
from .._xla.operands import scalar_buffer
from .._xla.tiers import of_operation
from ..typing import Array as AnyArray
from ..typing import ArrayLike
from . import elementwise as el
from .index_access import INT64, PLAIN, Spec, masked, read, shape_of_positions, write
from .index_plans import LOOSE, NEW, POINT, ROWS, SCALAR, IndexPlan, concrete_mask, parse
from .indexing import FILL, normal_fill, normal_mode
from .layout import all_free, free, placed
from .reduction import max_
from .shape import convert, fill, keep_imaginary, materialise_at_ground

__all__ = ["At", "getitem"]

# ---- without tracing: one stored program for each plan -----------------------------------------

_programs: dict[Any, Any] = {}
_plans: dict[Any, Any] = {}
_rows: dict[Any, Any] = {}
_runs: dict[Any, Any] = {}
_sets: dict[Any, Any] = {}
_starts: dict[int, Any] = {}
_KEPT = 4096


def _keep(store: dict, key: object, value: object) -> Any:
    if len(store) >= _KEPT:
        store.clear()
    store[key] = value
    return value


def _start(i: int) -> Any:
    """Return a position as a buffer."""
    try:
        return _starts[i]
    except KeyError:
        dtype = INT32 if i < 2**31 else INT64
        return _keep(_starts, i, scalar_buffer(Literal(i, Aval((), dtype))))


def _types_of(values: Sequence[Any]) -> list[Any]:
    """Return the dispatch keys of positions."""
    return [
        v.key if v.__class__ is Array else Aval((), INT32 if v < 2**31 else INT64) for v in values
    ]


def _program(kind: tuple[Any, ...], f: Callable, operands: Sequence[Any]) -> tuple:
    """Return (run, handlers, key of the result) of `f`, for operands with these dispatch keys."""
    key = kind, tuple(operands)
    try:
        return _programs[key]
    except KeyError:
        pass
    avals = [k.aval for k in operands]
    name = "index" if kind[0] == "get" else "write"
    program = staged(lambda *xs: [f(*xs)], avals, name)
    run, handlers, keys = executable(program, (), operands, of_operation(program))
    return _keep(_programs, key, (run, handlers, keys[0]))


def _array(found: tuple, bufs: list) -> Array:
    """Run a program on buffers, and return its result."""
    run, handlers, key = found
    try:
        return wrap(run(bufs).consume_with_handlers(handlers)[0], key)
    except jaxlib_api.RuntimeFailure as e:
        raise failure(e, bufs) from None


def _exact(index: Any) -> Any:
    """Return a key of an index that holds no arrays; None if it does."""
    if index.__class__ is tuple:
        parts = [_exact(i) for i in index]
        return None if None in parts else tuple(parts)
    kind = index.__class__
    if kind is int:
        return index
    if kind is slice:
        bounds = index.start, index.stop, index.step
        ok = all(b is None or b.__class__ is int for b in bounds)
        return (slice, *bounds) if ok else None
    return "new" if index is None else "..." if index is Ellipsis else None


def _buffers(values: Sequence[Any]) -> list[Any]:
    return [v.buffer() if v.__class__ is Array else _start(v) for v in values]


def _solid(values: Sequence[Any]) -> list[Any] | None:
    """Return positions as arrays and ints; None if something is being traced."""
    out = []
    for v in values:
        if v.__class__ is Literal:
            v = materialise_at_ground(v)
        if isinstance(v, Tracer) or not (v.__class__ is Array or v.__class__ is int):
            return None
        out.append(v)
    return out


def _read_now(x: Array, index: object) -> Any:
    """Return `x[index]` while nothing is traced."""
    exact = _exact(index)
    if exact is not None:
        plan = _plans.get((x.key, exact))
        if plan is not None:
            found, bufs = plan
            return _array(found, [x.buffer(), *bufs])
    plan, values = parse(x.aval.shape, index)
    if not values and not plan.grown and NEW not in plan.layout:
        return x
    positions = _solid(values)
    if positions is None:
        return read(x, plan, values)
    f = lambda x, *vs: read(x, plan, vs)  # noqa: E731
    found = _program(("get", plan), f, [x.key, *_types_of(positions)])
    bufs = _buffers(positions)
    # A known position that is computed is out of range: whether that is an error may change.
    if exact is not None and SCALAR not in plan.entries:
        _keep(_plans, (x.key, exact), (found, bufs))
        if exact.__class__ is int:
            _keep(_rows, x.key, (found, x.aval.shape[0]))
        elif exact[0] is slice and plan.entries[0].__class__ is tuple and exact[3] in (None, 1):
            _keep(_runs, (x.key, plan.entries[0][0]), found)
    return _array(found, [x.buffer(), *bufs])


def getitem(x: Any, index: Any) -> AnyArray:
    """Return `x[index]`, as in numpy.

    Args:
      x: an array.
      index: integers, slices, Ellipsis, None, integer arrays, boolean arrays whose values are
        known, lists in the place of arrays, or a tuple of these.  Computed integers that lie
        outside are clamped.

    Raises SubscriptError (an IndexError) if the array has no such element, and TypeRule for an
    invalid index.  Raises ConcretizationError if the result's shape depends on traced values.

    >>> import plait
    >>> x = plait.numpy.arange(12).reshape(3, 4)
    >>> x[1, ::-2]
    Array([7, 5], dtype=int32)
    """
    if x.__class__ is Array and current() is GROUND:
        kind = index.__class__
        try:
            if kind is int:
                found, n = _rows[x.key]
                i = index + n if index < 0 else index
                if 0 <= i < n:
                    return _array(found, [x._buf, _start(i)])
            elif kind is slice and index.step is None:
                a, b, _ = index.indices(x.aval.shape[0])
                return _array(_runs[x.key, b - a], [x._buf, _start(a)])
        except (KeyError, AttributeError, IndexError, TypeError, ValueError):
            pass
        return _read_now(x, index)
    x = materialise_at_ground(as_value(x))
    if x.__class__ is Array and current() is GROUND:
        return _read_now(x, index)
    return read(x, *parse(x.aval.shape, index))


# ---- x.at[...] -----------------------------------------------------------------------------


def _single_mask(x: Value, index: Any) -> Any:
    """Return the mask if the index is one boolean array with axes, else None."""
    if index.__class__ is tuple and len(index) == 1:
        index = index[0]
    if isinstance(index, Value | np.ndarray) and index.dtype == BOOL and index.ndim:
        return index if index.shape == x.aval.shape[: index.ndim] else None
    return None


class At:
    """`x.at`: `x.at[index].set(value)` replaces numpy's `x[index] = value`."""

    __slots__ = ("array",)
    array: Any

    def __init__(self, array: Any):
        self.array = array

    def __getitem__(self, index: object) -> "Positions":
        return Positions(self.array, index)

    @border
    def __setitem__(self, index: Any, value: Any) -> None:
        raise ArgumentError(
            "x.at[index] cannot be assigned to: arrays are immutable",
            fix="write x = x.at[index].set(value), or .add(value), .multiply(value)",
        )

    def __repr__(self) -> str:
        return f"At({self.array!r})"


class Positions:
    """`x.at[index]`: elements of an array, to be read or to be written in a copy.

    Every method takes `mode`, the treatment of computed positions outside: "fill", "clip", "drop"
    or "promise_in_bounds".  By default writes use "drop" and reads "clip".  With a mode, fixed
    integers may lie outside too.  `indices_are_sorted` and `unique_indices` are promises that make
    it faster.  With `wrap_negative_indices` False, negative positions are outside.
    `out_sharding` is the sharding of the result.
    """

    __slots__ = ("array", "index")
    array: Any
    index: Any

    def __init__(self, array: Any, index: Any):
        self.array, self.index = array, index

    def __repr__(self) -> str:
        return f"Positions({self.array!r}, {self.index!r})"

    @border
    def get(
        self,
        *,
        mode: Any = None,
        fill_value: Any = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        wrap_negative_indices: bool = True,
        out_sharding: object = None,
    ) -> AnyArray:
        """Read the elements.

        With mode "fill", `fill_value` is read outside; it is nan by default, or the least (signed)
        or greatest integer.
        """
        x = self if out_sharding is None else self._free(out_sharding)
        return placed(
            x._get(mode, fill_value, indices_are_sorted, unique_indices, wrap_negative_indices),
            out_sharding,
        )

    def _free(self, sharding: object) -> "Positions":
        """Return the same positions, released from the shardings of the array and the index."""
        return Positions(free(self.array, sharding), all_free(self.index, sharding))

    def _get(
        self,
        mode: str | None,
        fill_value: float | None,
        indices_are_sorted: bool,
        unique_indices: bool,
        wrap_negative_indices: bool,
    ) -> Any:
        x = materialise_at_ground(as_value(self.array))
        if mode is None and fill_value is not None:
            mode = FILL
        spec = Spec(
            None if mode is None else normal_mode(mode),
            normal_fill(fill_value, x.aval.dtype),
            bool(indices_are_sorted),
            bool(unique_indices),
        )
        wrap = bool(wrap_negative_indices)
        plan, values = parse(x.aval.shape, self.index, mode is None, wrap)
        positions = _solid(values) if x.__class__ is Array and current() is GROUND else None
        if positions is None:
            return read(x, plan, values, spec)
        f = lambda x, *vs: read(x, plan, vs, spec)  # noqa: E731
        kind = "get", plan, freeze(tuple(spec))
        found = _program(kind, f, [x.key, *_types_of(positions)])
        return _array(found, [x.buffer(), *_buffers(positions)])

    def set(self, values: ArrayLike, **how: Any) -> AnyArray:
        """Return the array with `values` there; of several for one position any one may remain.

        >>> import plait
        >>> plait.numpy.zeros(4).at[1:3].set(5.0)
        Array([0., 5., 5., 0.], dtype=float32)
        """
        x, index = self.array, self.index
        if not how and index.__class__ is int and x.__class__ is Array and current() is GROUND:
            try:
                found, n, cell, bounds = _sets[x.key, values.__class__]
                i = index + n if index < 0 else index
                if 0 <= i < n and (bounds is None or bounds[0] <= values <= bounds[1]):
                    v = scalar_buffer(Literal(values, cell))
                    return _array(found, [x._buf, _start(i), v])
            except (KeyError, AttributeError):
                pass
        try:
            return self._write("set", values, **how)
        except BaseException as e:
            leaving(e)
            raise

    @border
    def add(self, values: ArrayLike, **how: object) -> AnyArray:
        """Return the array with `values` added there, as often as a position occurs."""
        return self._write("add", values, **how)

    @border
    def subtract(self, values: ArrayLike, **how: object) -> AnyArray:
        """Return the array with `values` subtracted there, as often as a position occurs."""
        return self._write("subtract", values, **how)

    @border
    def multiply(self, values: ArrayLike, **how: object) -> AnyArray:
        """Return the array multiplied by `values` there, as often as a position occurs."""
        return self._write("multiply", values, **how)

    mul = multiply

    @border
    def divide(self, values: ArrayLike, **how: object) -> AnyArray:
        """Return the array divided by `values` there, as often as a position occurs."""
        return self._write("divide", values, **how)

    @border
    def power(self, values: ArrayLike, **how: object) -> AnyArray:
        """Return the array raised to `values` there, as often as a position occurs."""
        return self._write("power", values, **how)

    @border
    def min(self, values: ArrayLike, **how: object) -> AnyArray:
        """Return the array with the least of its elements and `values` there."""
        return self._write("min", values, **how)

    @border
    def max(self, values: ArrayLike, **how: object) -> AnyArray:
        """Return the array with the greatest of its elements and `values` there."""
        return self._write("max", values, **how)

    @border
    def apply(self, func: Callable[[Any], Any], **how: object) -> AnyArray:
        """Return the array with `func` applied to elements there, as often as a position occurs.

        `func` is elementwise.  Each application takes the result of the one before, in the array's
        dtype.  With `unique_indices` it is applied once.

        >>> import plait
        >>> plait.numpy.ones(3).at[plait.numpy.array([0, 0, 2])].apply(lambda v: v * 2)
        Array([4., 1., 2.], dtype=float32)
        """
        x = materialise_at_ground(as_value(self.array))
        mask = _single_mask(x, self.index)
        if mask is not None and isinstance(mask, Tracer):
            new = convert(func(x), x.aval.dtype)
            return masked(x, as_value(mask), new, "set")
        index = self.index if mask is None else np.nonzero(concrete_mask(mask))
        wrap = bool(how.get("wrap_negative_indices", True))
        plan, values = parse(x.aval.shape, index, how.get("mode") is None, wrap)
        spec = _spec(how)
        several = mask is None and any(e in (ROWS, LOOSE) for e in plan.entries)
        if several and not spec.unique:
            new = _each_time(func, x, plan, values)
        else:
            new = func(read(x, plan, values))
        return write(x, plan, values, new, "set", spec)

    def _write(self, op: str, v: object, **how: object) -> Any:
        sharding = how.pop("out_sharding", None)
        x = self if sharding is None else self._free(sharding)
        return placed(x._written(op, free(v, sharding), **how), sharding)

    def _written(self, op: str, v: Any, **how: object) -> Any:
        x = materialise_at_ground(as_value(self.array))
        if v.__class__ is int and op not in _OF_FLOATS and x.aval.category != OPAQUE:
            v = convert(v, x.aval.dtype, True)  # This refuses an int that does not fit.
        v = _written_value(v)
        keep_imaginary(v.aval, x.aval.dtype)
        if v.aval.category == NOTHING and x.aval.category != NOTHING:
            raise nothing_to_do([x.aval, v.aval])
        spec = _spec(how)
        mask = _single_mask(x, self.index)
        if mask is not None and v.aval.ndim <= x.aval.ndim - mask.ndim:
            return self._write_masked(x, as_value(mask), v, op)
        wrap = bool(how.get("wrap_negative_indices", True))
        plan, values = parse(x.aval.shape, self.index, how.get("mode") is None, wrap)
        now = x.__class__ is Array and current() is GROUND
        positions = _solid(values) if now else None
        if positions is None or isinstance(v, Tracer):
            return write(x, plan, values, v, op, spec)
        return self._write_now(x, plan, positions, v, op, spec)

    def _write_now(
        self, x: Array, plan: IndexPlan, positions: list, v: Any, op: str, spec: Spec
    ) -> Any:
        f = lambda x, v, *vs: write(x, plan, vs, v, op, spec)  # noqa: E731
        kind = "write", op, plan, spec
        cell: Any = None
        if v.__class__ is Literal:
            dtype = v.aval.dtype if op in _OF_FLOATS else x.aval.dtype
            cell = Aval((), dtype, v.aval.weak_type)
        operands = [x.key, cell or v.key, *_types_of(positions)]
        found = _program(kind, f, operands)
        bufs = _buffers(positions)
        if cell is not None and op == "set" and plan.entries[:1] == (POINT,):
            self._remember(x, found, cell, v)
        b = v.buffer() if cell is None else scalar_buffer(Literal(v.value, cell))
        return _array(found, [x.buffer(), b, *bufs])

    def _remember(self, x: Array, found: tuple, cell: Aval, v: Literal) -> None:
        """Store the program so that the next `x.at[i].set(scalar)` is a look-up."""
        if self.index.__class__ is not int or not (v.aval.weak_type or v.value.__class__ is bool):
            return
        run, handlers, key = found
        # `set` passes the position before the value; the program takes them in the other order.
        swapped = lambda bufs: run([bufs[0], bufs[2], bufs[1]])  # noqa: E731
        whole = v.value.__class__ is int and x.aval.category == INTEGER
        bounds = integer_bounds(x.aval.dtype) if whole else None
        kept = (swapped, handlers, key), x.aval.shape[0], cell, bounds
        _keep(_sets, (x.key, v.value.__class__), kept)

    def _write_masked(self, x: Any, mask: Any, v: Any, op: str) -> Any:
        if x.__class__ is not Array or mask.__class__ is not Array or current() is not GROUND:
            return masked(x, mask, v, op)
        v = materialise_at_ground(v)
        if v.__class__ is not Array:
            return masked(x, mask, v, op)
        f = lambda x, m, v: masked(x, m, v, op)  # noqa: E731
        found = _program(("mask", op), f, [x.key, mask.key, v.key])
        return _array(found, [x.buffer(), mask.buffer(), v.buffer()])


def _written_value(v: object) -> Any:
    """Return the written argument as a value; lists, ranges and memory are accepted, as by JAX."""
    if isinstance(v, Value):
        return v
    if isinstance(v, list | tuple | range | memoryview | array.array):
        return later("numpy").asarray(v)
    return as_value(v)


def _each_time(func: Callable, x: Value, plan: IndexPlan, values: Sequence[Any]) -> Any:
    """Return the values at positions after applying `func` as often as each position occurs.

    All occurrences of one position start with one value and end with one, so it does not matter
    which of them is written.
    """
    known = not any(isinstance(v, Tracer) for v in values)
    known = known and all(d.__class__ is int for d in x.aval.shape)
    with use(GROUND) if known else nullcontext():
        zeros = fill(0, Aval(x.aval.shape, INT32))
        counts = read(write(zeros, plan, values, Literal(1, Aval((), INT32)), "add"), plan, values)
        most = max_(counts, initial=Literal(1, counts.aval.with_shape(())))
    first = read(x, plan, values)
    again = lambda v: convert(func(v), x.aval.dtype, x.aval.weak_type)  # noqa: E731

    def turn(k: ArrayLike, v: Value) -> Any:
        active = el.gt(counts, k)
        # Inactive elements get `first`, so that `func` gives their derivatives no new nan.
        return el.select(active, again(el.select(active, v, first)), v)

    v = again(first)
    if known and most.item() <= _UNROLLED:
        for k in range(1, most.item()):
            v = turn(k, v)
        return v
    steps = most.item() if known else product(shape_of_positions(plan, values))
    _, v = later("lax").while_loop(
        lambda c: el.lt(c[0], most), lambda c: (el.add(c[0], 1), turn(*c)),
        (Literal(1, Aval((), INT32)), v), max_steps=steps if steps.__class__ is int else None,
    )  # fmt: skip
    return v


_UNROLLED = 8
"""The most turns that are unrolled."""
_OF_FLOATS = "divide", "power"
"""Operations whose value is written in the dtype of its result, not in that of the array."""
_HOW = {"mode", "indices_are_sorted", "unique_indices", "wrap_negative_indices"}


def _spec(how: dict[str, Any]) -> Spec:
    if not how:
        return PLAIN
    unknown = how.keys() - _HOW
    if unknown:
        raise ArgumentError(
            f"writing takes no argument {sorted(unknown)[0]!r}", fix=f"it takes {sorted(_HOW)}"
        )
    mode = how.get("mode")
    return Spec(
        None if mode is None else normal_mode(mode),
        None,
        bool(how.get("indices_are_sorted", False)),
        bool(how.get("unique_indices", False)),
    )
