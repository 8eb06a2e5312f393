"""Structures of piles as bytes, for artifacts.

    {"count": 3, "types": [["n0,4", "float32"]], "sizes": [["n0", 64, 8, 4, 0, 1, false]],
     "tree": "*"}

Sizes that an outer pile names are texts.  Elements may be arrays, tuples, lists and dictionaries
with strings as keys, and piles.

Invariant: a structure that is read back equals the one that was written; any other input raises
ValueError.
"""

import json
from typing import Any

import numpy as np

from plait.ext.sizes import Dim, symbolic_dims
from plait.ext.tree import TreeDef, flatten
from plait.ext.types import EXTRA_DTYPES, Aval, Opaque

from .capacities import Size
from .names import SCOPE
from .operators import is_pile

__all__ = ["read", "written"]


def written(types: Any, sizes: Any, tree: TreeDef, count: Any) -> bytes:
    """Return the structure of a pile as bytes; raise ValueError for elements without a form."""
    return json.dumps(_plain(types, sizes, tree, count)).encode()


def _plain(types: Any, sizes: Any, tree: TreeDef, count: Any) -> dict:
    return {
        "count": _number(count),
        "types": [[",".join(map(str, t.shape)), t.dtype.name] for t in types],
        "sizes": [[s.name, *map(_number, s.counts), s.least, s.multiple, s.spare] for s in sizes],
        "tree": _tree(tree.unflatten(range(tree.num_leaves))),
    }


def _number(n: Any) -> Any:
    return str(n) if n.__class__ is Dim else int(n)


def _tree(x: Any) -> Any:
    if isinstance(x, int):
        return "*"
    if is_pile(x):
        return {"pile": _plain(x._types, x._sizes, x._tree, x._count)}
    if x.__class__ in (tuple, list):
        return {x.__class__.__name__: list(map(_tree, x))}
    if x.__class__ is dict and all(k.__class__ is str for k in x):
        return {"dict": {k: _tree(v) for k, v in x.items()}}
    raise ValueError(f"elements of class {type(x).__name__} have no form in artifacts")


def read(kind: Any, text: bytes) -> tuple[Any, Any, TreeDef, Any]:
    """Return (types, sizes, structure of an element, number of elements) from bytes.

    `kind` is the class of piles."""
    try:
        return _read(kind, json.loads(text))
    except ValueError:
        raise
    except Exception as e:
        raise ValueError(f"not the structure of a pile: {e}") from e


def _read(kind: Any, given: dict) -> tuple[Any, Any, TreeDef, Any]:
    types = tuple([Aval(symbolic_dims(shape, SCOPE), _dtype(d)) for shape, d in given["types"]])
    sizes = tuple([_size(*s) for s in given["sizes"]])
    tree = flatten(_untree(kind, given["tree"]))[1]
    if tree.num_leaves != len(types):
        raise ValueError("the elements of a pile have other leaves than types")
    return types, sizes, tree, _size_of(given["count"])


def _dtype(name: str) -> Any:
    return Opaque.named(name) or EXTRA_DTYPES.get(name) or np.dtype(name)


def _size_of(n: Any) -> Any:
    if n.__class__ is str:
        return symbolic_dims(n, SCOPE)[0]
    if n.__class__ is not int or n < 0:
        raise ValueError(f"{n!r} is not a size")
    return n


def _size(
    name: str, rows: Any, longest: Any, squares: Any, least: Any, multiple: Any, spare: bool
) -> Size:
    if _size_of(multiple) < 1 or spare not in (True, False) or name.__class__ is not str:
        raise ValueError("not the bounds of a size")
    rows, longest, squares = map(_size_of, (rows, longest, squares))
    return Size(name, rows, longest, squares, "", _size_of(least), multiple, spare)


def _untree(kind: Any, x: Any) -> Any:
    if x == "*":
        return 0
    ((what, inside),) = x.items()
    if what == "pile":
        types, sizes, tree, count = _read(kind, inside)
        return kind._of([0] * len(types), [0] * len(sizes), types, sizes, tree, count)
    if what in ("tuple", "list"):
        return (tuple if what == "tuple" else list)(_untree(kind, v) for v in inside)
    if what == "dict":
        return {k: _untree(kind, v) for k, v in inside.items()}
    raise ValueError(f"{what!r} is not a kind of element")
