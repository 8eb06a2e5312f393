"""Rows of piles, made of elements: `Pile.from_list`, and the arrays of other constructors.

Invariant: elements differ in size along the given axes only, and their values are known.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from operator import attrgetter, index
from typing import TYPE_CHECKING, Any

import numpy as np

from plait.ext.errors import ArgumentError, ConcretizationError, OperandTypeError, ShapeError
from plait.ext.ops.opaque import unwrap, wrap
from plait.ext.sizes import Dim
from plait.ext.trace import Tracer, Value
from plait.ext.tree import LEAF, TreeDef, flatten
from plait.ext.types import Aval, Opaque
from plait.ext.values import Array, as_value, canonical

from .capacities import TILE, Size, capacities_of, examples_in
from .elements import names_inside, piles_in
from .layouts import fit
from .lengths import array_of, filled_up, size_of
from .names import named
from .on_host import laid_out, new_rows, on_device
from .operators import is_pile
from .policy import Capacities

if TYPE_CHECKING:
    from .pile import Pile

__all__ = [
    "arrays_of", "axis_number", "from_elements", "type_along", "type_of", "whole_number",
    "with_rows", "with_rows_on_host",
]  # fmt: skip


_NUMPY = frozenset([np.ndarray])
_ARRAYS = frozenset([np.ndarray, Array])
_dtype, _shape = attrgetter("dtype"), attrgetter("shape")
_ALWAYS_AS_STORED = frozenset(map(np.dtype, ["?", *"bhiBHI", *"efF"]))
"""Dtypes in which arrays keep the elements of numpy as they are, whatever the settings are."""


def whole_number(n: Any) -> int | None:
    """Return an index as an int; None if it is not an integer."""
    try:
        return None if isinstance(n, bool) else index(n)
    except TypeError:
        return None


def axis_number(axis: int | str | None) -> int:
    a = whole_number(axis)
    if a is None:
        raise ArgumentError(f"an axis of a pile is {axis!r}", fix="give the number of an axis: 0")
    return a


def arrays_of(data: object) -> tuple[list[Any], TreeDef]:
    """Return the leaves of a tree of arrays, where a list of numbers is one, and its structure.

    Numpy arrays stay as they are, since each copy to a device takes time."""
    if type(data) is np.ndarray:
        return [data if _is_as_stored(data.dtype) else as_value(data)], LEAF
    leaves, tree = flatten(data, _is_numbers)
    return [_value(_array(x) if isinstance(x, list) else x) for x in leaves], tree


def _value(x: Any) -> Any:
    return x if x.__class__ is np.ndarray and _is_as_stored(x.dtype) else as_value(x)


def _is_as_stored(dtype: np.dtype) -> bool:
    """Return whether arrays have numpy arrays of this dtype as they are."""
    return dtype in _ALWAYS_AS_STORED or (dtype.kind in "biufc" and canonical(dtype) == dtype)


def type_of(x: Any) -> Aval:
    """Return the type of an array that `arrays_of` returned."""
    return Aval(x.shape, x.dtype) if x.__class__ is np.ndarray else x.aval


def type_along(x: Any, axis: int, d: Dim) -> Aval:
    """Return the type of an element of size `d` along an axis, for an array of their rows."""
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    if x.__class__ is np.ndarray:
        return _type(before, d, after, x.dtype)
    return x.aval.with_shape((*before, d, *after))


@lru_cache(maxsize=1024)
def _type_named(sizes: tuple[int | str, ...], dtype: np.dtype) -> Aval:
    """Return a type; some of its sizes are given by name."""
    return Aval(tuple([named(n) if n.__class__ is str else n for n in sizes]), dtype)


@lru_cache(maxsize=1024)
def _type(before: tuple[int, ...], d: Dim, after: tuple[int, ...], dtype: np.dtype) -> Aval:
    return Aval((*before, d, *after), dtype)


def _array(x: object) -> np.ndarray:
    """Return an element as a numpy array.

    Raises ShapeError for a list of lists of different sizes, and ConcretizationError for traced
    values."""
    if isinstance(x, Tracer):
        raise ConcretizationError(
            f"a pile of {x!r}, whose sizes are those of every element",
            fix="make it of padded arrays and traced lengths: Pile.from_padded(x, lengths)",
        )
    try:
        return np.asarray(x)
    except ValueError:
        raise ShapeError(
            "an element is a list of lists whose sizes differ",
            fix="make it an array: sizes differ from element to element, not inside of one",
        ) from None


def with_rows(x: Value, axis: int, n: int) -> Any:
    """Return `x` with `n` rows along `axis`.

    Known values are resized in numpy, because each number of rows would compile a program."""
    if isinstance(x, Tracer) or x.dtype.__class__ is Opaque:
        return fit(x, axis, n)
    return as_value(x) if x.shape[axis] == n else with_rows_on_host(x, axis, n)


def with_rows_on_host(x: Any, axis: int, n: int) -> Any:
    """Return the same of a known array, which numpy resizes."""
    host = np.asarray(x)
    shape = host.shape
    have = min(n, shape[axis])
    out = new_rows((*shape[:axis], n, *shape[axis + 1 :]), host.dtype)
    if axis == 0:
        out[:have] = host[:have]
        out[have:] = 0
    else:
        before = (slice(None),) * axis
        out[(*before, slice(have))] = host[(*before, slice(have))]
        out[(*before, slice(have, None))] = 0
    return on_device(out)


def from_elements(
    kind: type[Any], elements: list[Any], axes: tuple[int, ...], policy: Capacities | None
) -> Any:
    if not elements:
        raise ArgumentError(
            "a pile of no elements has no type",
            fix="give an element, or make it of an array: Pile(data, lengths)",
        )
    if _ARRAYS.issuperset(map(type, elements)):
        return _of_columns(kind, [elements], [axes], LEAF, policy)
    if any(is_pile(x) for x in flatten(elements, is_pile)[0]):
        return _of_piles(kind, elements, axes, policy)
    trees = [flatten(e, _is_numbers) for e in elements]
    tree = trees[0][1]
    for b, (_, t) in enumerate(trees):
        if t != tree:
            raise ShapeError(
                f"elements of a pile are trees of one structure, and element {b} is {t}, where "
                f"the first is {tree}",
                fix="give them one structure",
            )
    if not tree.num_leaves:
        raise ShapeError("the elements of a pile have no arrays", fix="give arrays")
    columns = list(zip(*[leaves for leaves, _ in trees], strict=True))
    return _of_columns(kind, columns, [axes] * len(columns), tree, policy)


def _of_columns(
    kind: type,
    columns: Sequence[Sequence],
    axes: Sequence[tuple],
    tree: TreeDef | Callable[[list], TreeDef],
    policy: Capacities | None,
    first: int = 0,
    labels: Sequence[Any] | None = None,
) -> Any:
    """Return the pile of elements with these leaves, which differ in size along these axes.

    Args:
      tree: the structure of an element, or a function that returns it, given the types of its
        leaves.
      first: the number of the first named size.
      labels: for each column, the purpose of its lengths; only equal lengths of one purpose have
        one name, so that elements have types that do not depend on their lengths.
    """
    vectors: list[np.ndarray] = []  # the lengths of each name
    purposes: list[Any] = []
    types, sizes, leaves = [], [], []
    made = [*map(_numbers, columns)]
    labels = [None] * len(made) if labels is None else labels
    for (column, dtype, opaque), own, label in zip(made, axes, labels, strict=True):
        if opaque is not None:
            own = tuple([a - len(opaque.shape) * (a < 0) for a in own])
        types.append(_element_type(column, dtype, own, vectors, purposes, label, first))
    more = 0 if policy is None else policy.missing(len(columns[0]))
    if more:
        vectors = [filled_up(v, more) for v in vectors]
    for i, v in enumerate(vectors, first):
        sizes.append(size_of(f"n{i}", v, 0, 0, policy))
    count = len(columns[0]) + more
    if callable(tree):
        tree = tree(types)
    caps = capacities_of(tuple(sizes), count)
    for i, ((column, _, opaque), t) in enumerate(zip(made, types, strict=True)):
        leaf: Any = on_device(laid_out(column, t, caps, count))
        if opaque is not None:
            leaf = wrap(leaf, opaque)
            types[i] = Aval(t.shape[: t.ndim - len(opaque.shape)], opaque)
        leaves.append(leaf)
    return kind._of(leaves, [*map(array_of, vectors)], types, sizes, tree, count)


def _numbers(column: Sequence) -> tuple[list[np.ndarray], np.dtype, Opaque | None]:
    """Return (elements as numpy arrays, their common dtype, None); of keys, (the words of each,
    their dtype, the dtype of the keys)."""
    if _NUMPY.issuperset(map(type, column)):
        # Numpy arrays are converted here as the Arrays made of them would be read: a copy of each
        # to the device and back would take most of the time in which a pile is made.
        dtypes = {*map(_dtype, column)}
        if len(dtypes) == 1:
            (dtype,) = dtypes
            if _is_as_stored(dtype):
                return [*column], dtype, None
        return *_common(list(map(_on_host, column))), None
    dtypes: set[Any] = {
        x.dtype for x in column if isinstance(x, Array) and x.dtype.__class__ is Opaque
    }
    if not dtypes:
        return *_common([np.asarray(as_value(_array(x))) for x in column]), None
    (opaque, *others) = dtypes
    if others or not all(isinstance(x, Array) and x.dtype == opaque for x in column):
        raise OperandTypeError(
            "elements of a pile have one dtype, and some are keys of another kind, or numbers",
            fix="make a pile for each dtype",
        )
    return *_common([np.asarray(unwrap(x)) for x in column]), opaque


def _common(column: list[np.ndarray]) -> tuple[list[np.ndarray], np.dtype]:
    """Return numpy arrays, and the dtype that holds the numbers of all."""
    dtypes = {*map(_dtype, column)}
    return column, dtypes.pop() if len(dtypes) == 1 else np.result_type(*dtypes)


def _on_host(x: np.ndarray) -> np.ndarray:
    """Return a numpy array as the Array made of it would be read."""
    if x.dtype.kind not in "biufc":
        return np.asarray(as_value(x))
    return x if _is_as_stored(x.dtype) else x.astype(canonical(x.dtype))


def _of_piles(kind: Any, elements: list, axes: tuple[int, ...], policy: Capacities | None) -> Any:
    """Return the pile of trees that contain piles: its leaves are their rows and their lengths."""
    apart = [flatten(e, lambda x: is_pile(x) or _is_numbers(x)) for e in elements]
    units, tree = apart[0]
    for b, (others, t) in enumerate(apart):
        if t != tree or any(_kind(x) != _kind(y) for x, y in zip(others, units)):
            raise ShapeError(
                f"elements of a pile are trees of one structure, and element {b} is "
                f"{elements[b]!r}, where the first is {elements[0]!r}",
                fix="give them one structure, and the piles in them elements of one type",
            )
    columns: list[Sequence] = []
    own: list[tuple] = []
    labels: list[Any] = []
    for number, unit in enumerate(zip(*[units for units, _ in apart])):
        if not is_pile(unit[0]):
            columns.append(unit)
            own.append(axes)
            labels.append(None)
            continue
        for i, t in enumerate(unit[0]._types):
            (a,) = unit[0]._axes(t)
            columns.append([p._rows(*p._columns()[i]) for p in unit])
            own.append((a,))
            labels.append((number, str(t.shape[a])))
        for vectors in zip(*map(_lengths_of_examples, unit), strict=True):
            columns.append(vectors)
            own.append((0,))
            labels.append((number, "elements"))

    def tree_of(types: list) -> TreeDef:
        given, spoken = iter(types), []
        for u in units:
            spoken.append(_spoken_inside(kind, u, given) if is_pile(u) else next(given))
        return flatten(tree.unflatten(spoken))[1]

    first = names_inside(tree.unflatten(units))
    return _of_columns(kind, columns, own, tree_of, policy, first, labels)


def _lengths_of_examples(p: "Pile") -> list[np.ndarray]:
    """Return the lengths of an inner pile without those of missing elements: inner piles may have
    different numbers of elements, so none needs to be filled up."""
    vectors = {s.name: np.asarray(n) for s, n in zip(p._sizes, p._lengths, strict=True)}
    count = examples_in(p._sizes, vectors)
    return [n[:count] for n in vectors.values()]


def _kind(x: "Pile") -> Any:
    """Return the properties in which the inner piles of all elements must agree; None for other
    values.

    Raises ShapeError for piles that cannot be elements."""
    if not is_pile(x):
        return None
    of_piles = bool(piles_in(x._tree))
    if any(len(x._axes(t)) != 1 for t in x._types) or (len(x._sizes) != 1 and not of_piles):
        raise ShapeError(
            f"an element is {x!r}: the elements of a pile in a pile are arrays, or trees of them, "
            "that differ along one axis, and have one vector of lengths",
            fix="make a pile for each such axis",
        )
    return x._types, x._tree


def _spoken_inside(kind: type, p: "Pile", given: Iterator[Aval]) -> Any:
    """Return an inner pile, given the types of its rows and lengths."""
    rows = [next(given) for _ in p._types]
    counts = [next(given).shape[0] for _ in p._sizes]
    have: dict[str, Any] = {}
    for t, laid in zip(p._types, rows, strict=True):
        (a,) = p._axes(t)
        have[str(t.shape[a])] = laid.shape[a]
    sizes = tuple([_size_inside(s.name, have[s.name], counts[0]) for s in p._sizes])
    return kind._of(rows, counts, p._types, sizes, p._tree, counts[0])


def _size_inside(name: str, rows: Any, count: Dim) -> Size:
    """Return the capacities of a size, for symbolic numbers of rows and elements."""
    tiles = -(-rows // TILE)
    return Size(name, rows, rows, count * tiles * tiles + 1)


def _is_numbers(x: object) -> bool:
    """Return whether `x` is a list of numbers, or of such lists, which is an array and not a
    tree."""
    return isinstance(x, list) and all(
        isinstance(v, int | float | complex | np.generic) or _is_numbers(v) for v in x
    )


@lru_cache(maxsize=256)
def _ragged(axes: tuple[int, ...], rank: int) -> frozenset[int]:
    """Return the axes of arrays of a rank that are among `axes`, counted from the front."""
    return frozenset([a % rank for a in axes if -rank <= a < rank])


def _element_type(
    column: list,
    dtype: np.dtype,
    axes: tuple[int, ...],
    vectors: list,
    purposes: list,
    label: tuple[int | str, ...] | None,
    named_from: int,
) -> Aval:
    shapes = [*map(_shape, column)]
    first = shapes[0]
    rank = len(first)
    ragged = _ragged(axes, rank)
    if len(ragged) != len(axes):
        raise ShapeError(
            f"elements of shape {first} have no axes {axes}",
            fix="say by axis= along which axes sizes differ",
        )
    shape: list[int | str] = []
    try:
        sizes: list[Any] = [*zip(*shapes, strict=True)]
    except ValueError:
        sizes = [None] * rank
    for a, found in enumerate(sizes):
        if found is None or (a not in ragged and found.count(found[0]) < len(found)):
            raise ShapeError(
                f"elements of shapes {sorted(set(shapes))} differ elsewhere than "
                f"along axes {tuple(sorted(ragged))}",
                fix="say by axis= along which axes sizes differ",
            )
        if a not in ragged:
            shape.append(found[0])
            continue
        v = np.array(found, np.int32)
        i = 0
        while i < len(vectors) and (purposes[i] != label or (vectors[i] != v).any()):
            i += 1
        if i == len(vectors):
            vectors.append(v)
            purposes.append(label)
        shape.append(f"n{named_from + i}")
    return _type_named(tuple(shape), dtype)
