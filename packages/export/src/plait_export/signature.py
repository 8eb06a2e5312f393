"""Signatures: argument and result types as text, and their checks when a function is called.

Invariant: text that is read back gives the same type, in a scope with the same constraints; the
sizes of an accepted call satisfy every constraint.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from operator import index
from typing import Any

import numpy as np

from plait.ext.errors import (
    ArgumentError,
    DimMismatch,
    OperandTypeError,
    PlaitError,
    ShapeError,
    TreeMismatch,
    UndecidedDim,
    argument_path,
)
from plait.ext.ops import random as _keys  # noqa: F401  (it defines the dtypes of keys)
from plait.ext.sizes import Dim, Scope, solve_dims, symbolic_dims
from plait.ext.tree import flatten, in_words
from plait.ext.types import EXTRA_DTYPES, Aval, Opaque, float0, short_name

from .errors import ArtifactError, NotExportable, UndecidedCall

_NUMPY = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 "
    "complex128"
)
_DTYPES: dict[str, np.dtype] = {
    short_name(d): d for d in (*map(np.dtype, _NUMPY.split()), *EXTRA_DTYPES.values(), float0)
}
_TEXT = re.compile(r"(\w+(?:<\w+>)?)\[(.*)\](\*?)", re.S)
_MOST_SHOWN = 4

Sizes = dict[str, Any]


# ---- as text -------------------------------------------------------------------------------


def shown(aval: Aval) -> str:
    """Return a type as text: f32[b,3], with a star if it is weak."""
    return repr(aval)


def read(text: str, scope: Scope) -> Aval:
    """Parse the text of a type.  Raises ArtifactError for any other text."""
    found = _TEXT.fullmatch(text) if isinstance(text, str) else None
    dtype = None if found is None else _DTYPES.get(found[1]) or Opaque.named(found[1])
    if found is None or dtype is None:
        raise ArtifactError(
            f"{text!r} is not a type that this reader knows",
            fix="python -m pip install --upgrade plait-core plait-export",
        )
    try:
        return Aval(symbolic_dims(found[2], scope), dtype, bool(found[3]))
    except PlaitError as e:
        raise ArtifactError(f"{text!r} is not a type: {e.what}") from None


def scope_of(avals: Sequence[Any]) -> Scope | None:
    """Return the one scope of all symbolic sizes; None if there are none.

    Raises NotExportable if the sizes are of two scopes.
    """
    scopes = {d.scope: d for a in avals for d in a.shape if d.__class__ is Dim}
    if len(scopes) > 1:
        first, second, *_ = scopes.values()
        raise NotExportable(
            f"the sizes {first} and {second} of arguments are of two scopes, {first.scope!r} and "
            f"{second.scope!r}",
            fix="name all sizes in one scope: plait.export.symbolic_args_specs(args, ...), or "
            "symbolic_shape(..., scope=scope) with one SymbolicScope() for all shapes",
        )
    return next(iter(scopes), None)


# ---- against a call ------------------------------------------------------------------------


def check_types(
    want: Sequence[Aval], given: Sequence[Aval], argument: Callable[[int], str], name: str
) -> None:
    """Refuse arguments whose dtypes, ranks, or static sizes differ.

    Raises OperandTypeError or ShapeError with the name of the argument, `argument(i)`.
    """
    for i, (w, g) in enumerate(zip(want, given, strict=True)):
        if w.dtype != g.dtype:
            raise OperandTypeError(
                f"{argument(i)} of {name} was exported as {w!r} and is {g!r}",
                fix=f"convert it with .astype({w.dtype.name!r}), or export for that dtype too",
            )
        fits = w.ndim == g.ndim and all(
            a.__class__ is Dim or b.__class__ is Dim or a == b for a, b in zip(w.shape, g.shape)
        )
        if not fits:
            raise ShapeError(
                f"{argument(i)} of {name} was exported as {w!r} and is {g!r}",
                fix="give an array of that shape, or export with symbolic sizes: "
                "plait.export.symbolic_args_specs",
            )


def other_arguments(
    name: str, want: tuple[Any, ...], given: tuple[Any, ...], found: str, parameters: Sequence[str]
) -> TreeMismatch:
    """Return the error for a call with another structure of arguments.

    Args:
      name: the function's name.
      want, given: trees of the structures (args, kwargs).
      found: in what their parts differ, if as many are given.
      parameters: the names of the function's positional parameters, or none.
    """
    positional, named = len(want[0]), set(want[1])
    if len(given[0]) != positional or set(given[1]) != named:
        found = (
            f"it takes {positional} by position and {len(named)} by name, not {len(given[0])} and "
            f"{len(given[1])}"
        )
    call = [argument_path(f"[0][{i}]", tuple(parameters)) for i in range(positional)]
    call += [f"{key}={key}" for key in want[1]]
    return TreeMismatch(
        f"{name} was exported for other arguments: {found}",
        fix=f"write exported.call({', '.join(call)}), with (args, kwargs) like "
        f"{in_words(flatten(want)[1])}",
    )


def solved(
    want: Sequence[Aval], given: Sequence[Aval], argument: Callable[[int], str], name: str
) -> Sizes:
    """Return the size of every name, from types that `check_types` accepted.

    Raises DimMismatch or UndecidedDim, with the sizes of the arguments.
    """
    pairs = [
        (a, b)
        for w, g in zip(want, given, strict=True)
        for a, b in zip(w.shape, g.shape)
        if a.__class__ is Dim or b.__class__ is Dim
    ]
    if not pairs:
        return {}
    try:
        return solve_dims(pairs)
    except (DimMismatch, UndecidedDim) as e:
        lines = [
            f"{argument(i)} is {g!r}, exported as {w!r}"
            for i, (w, g) in enumerate(zip(want, given))
            if any(d.__class__ is Dim for d in w.shape)
        ]
        more = ["..."] if len(lines) > _MOST_SHOWN else []
        shown = "\n  ".join([*lines[:_MOST_SHOWN], *more])
        kind = UndecidedCall if isinstance(e, UndecidedDim) else DimMismatch
        raise kind(f"{name} cannot be called with these sizes: {e.what}\n  {shown}",
                   fix=e.fix or _SIZES) from None  # fmt: skip


def given_sizes(dims: Sequence[Dim], given: Mapping[str, Any], name: str) -> Sizes:
    """Return the sizes that are given for the names in `dims`, as ints.

    Raises ArgumentError for a size that is not an integer, and DimMismatch for sizes that an array
    cannot have or that break a constraint.
    """
    sizes: Sizes = {}
    for symbol, size in given.items():
        try:
            sizes[symbol] = index(size)
        except TypeError:
            raise ArgumentError(
                f"the size {symbol} of {name} is {size!r}, and is a number",
                fix=f"write {{{symbol!r}: 4}}",
            ) from None
    if not dims:
        return sizes
    names = symbolic_dims(", ".join(sizes), dims[0].scope)
    try:
        solve_dims([*zip(names, sizes.values())])
        below = [f"{d} is {n}" for d in dims if (n := d.substitute(sizes)) < 0]
        if below:
            raise DimMismatch(", ".join(dict.fromkeys(below)))
    except (DimMismatch, ZeroDivisionError) as e:
        why = e.what if isinstance(e, DimMismatch) else "a size is divided by 0"
        raise DimMismatch(
            f"{name} cannot be specialised to {sizes}: {why}",
            fix="give sizes that satisfy Exported.constraints and its types",
        ) from None
    return sizes


_SIZES = "give arrays whose sizes fit together as Exported.constraints and these types say"


def with_sizes(aval: Aval, sizes: Sizes) -> Aval:
    """Return the type with its names replaced by sizes."""
    if not any(d.__class__ is Dim for d in aval.shape):
        return aval
    return aval.with_shape([d.substitute(sizes) if d.__class__ is Dim else d for d in aval.shape])
