"""Errors for examples that have too few rows, where lengths are known.

A program with symbolic sizes is staged for all lengths.  So `x[0]`, the maximum of no rows, or a
slice beyond the end cannot be refused when it is staged; it reads 0, as always for such sizes.  If
lengths are known, the shortest examples are staged alone, which raises the error they would raise.

Invariant: a program that an example admits is never refused; the error is that of the example
alone.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from plait.ext.errors import PlaitError, ShapeError
from plait.ext.ir import Program, derived, dims_of, programs_in
from plait.ext.ops.indexing import dynamic_slice_, dynamic_update_slice_, gather_
from plait.ext.ops.shape import slice_
from plait.ext.ops.sorting import top_k_
from plait.ext.sizes import Dim
from plait.ext.types import Aval
from plait.ext.values import Array

__all__ = ["refuse_short"]

_WINDOWS = (dynamic_slice_, dynamic_update_slice_, gather_, slice_, top_k_)
"""Operations that read a given number of rows.  Those that need one row only are covered by
staging an example without rows."""


def refuse_short(
    program: Program,
    vectors: dict[str, Any],
    of_example: Callable[[dict[str, int]], Sequence[Aval]],
    roomy: Sequence[bool],
) -> None:
    """Raise the error of the first example that is too short, if lengths are known.

    Args:
      program: the program of one example.
      vectors: the lengths of each named size.
      of_example: returns the types of the results for one example of these sizes, staged without
        symbolic sizes.
      roomy: which results have capacities, which differ between examples.
    """
    if not all(isinstance(v, Array) for v in vectors.values()):
        return
    lengths = {name: np.asarray(v) for name, v in vectors.items()}
    names = frozenset(lengths)
    windows = derived(program, ("windows", names), lambda: list(_windows(program, names)))
    for b in _shortest(lengths):
        sizes = {name: int(n[b]) for name, n in lengths.items()}
        if min(sizes.values()) > 1 and all(_fits(e, sizes) for e in windows):
            continue
        told = ", ".join(f"{name} is {n}" for name, n in sizes.items())
        try:
            found = of_example(sizes)
        except PlaitError as error:
            error.what = f"vmap over a pile, example {b}, where {told}: {error.what}"
            raise
        for t, own, room in zip(program.out_avals, found, roomy):
            if not room and _at(t, sizes).shape != own.shape:
                raise ShapeError(
                    f"vmap over a pile, example {b}, where {told}: a result of type {own!r} is "
                    f"{t!r} of the others",
                    fix="write what does not depend on whether a size is 0 or 1",
                )


def _shortest(lengths: dict[str, np.ndarray]) -> list[int]:
    """Return the first of the shortest examples of each size, of those of no rows, and of one.

    Functions may take other paths for sizes 0 and 1."""
    found = set()
    for n in lengths.values():
        if n.size:
            found.update(int((n == k).argmax()) for k in (n.min(), 0, 1) if (n == k).any())
    return sorted(found)


def _windows(program: Program, names: frozenset[str]) -> Iterator[Any]:
    """Yield the equations of a program, and of inner programs, that read windows of ragged
    operands."""
    for e in program.eqns:
        for inner in programs_in(e.params):
            yield from _windows(inner, names)
        if e.prim in _WINDOWS:
            if not names.isdisjoint(dims_of([[a.aval for a in e.inputs]])):
                yield e


def _fits(e: Any, sizes: dict[str, int]) -> bool:
    """Return whether an equation is valid for these sizes."""
    avals = [_at(a.aval, sizes) for a in e.inputs]
    if e.prim is slice_:  # its type follows from limits alone, so inference does not check them
        limits = _at(e.params["limits"], sizes)
        return all(m <= n for m, n in zip(limits, avals[0].shape, strict=True))
    try:
        e.prim.infer(tuple(avals), {k: _at(v, sizes) for k, v in e.params.items()})
    except PlaitError:
        return False
    return True


def _at(x: Any, sizes: dict[str, int]) -> Any:
    """Replace symbolic sizes in a type or a parameter by these numbers."""
    if x.__class__ is Dim:
        return x.substitute(sizes)
    if x.__class__ is Aval:
        return x.with_shape([_at(d, sizes) for d in x.shape])
    if x.__class__ is tuple:
        return tuple([_at(v, sizes) for v in x])
    return x
