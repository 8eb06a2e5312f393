"""Errors for examples that have too few rows.

A program with symbolic sizes is staged for all lengths.  So `x[0]`, the maximum of no rows, or a
slice beyond the end cannot be refused when it is staged; it reads 0, as always for such sizes.
Whether an example is too short depends on its sizes alone.  If lengths are known, the shortest
examples are staged alone, which raises the error they would raise.  If lengths are traced, the
function is staged with small numbers in place of its sizes, and sizes that this refuses are refused
when the program runs.

Invariant: a program that an example admits is never refused; the error is that of the example
alone.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import plait.numpy as pnp
from plait.checks import FailedCheckError, Place
from plait.ext.errors import PlaitError, ShapeError, UndecidedDim, here
from plait.ext.ir import Program, derived, dims_of, programs_in, speaks_of
from plait.ext.ops.checks import check_p
from plait.ext.ops.contraction import dot_general
from plait.ext.ops.cumulative import cumsum_
from plait.ext.ops.indexing import dynamic_slice_, dynamic_update_slice_, gather_
from plait.ext.ops.reduction import reduce_and, reduce_or, reduce_prod, reduce_sum
from plait.ext.ops.shape import (
    broadcast_in_dim,
    convert_,
    dim_,
    iota_,
    slice_,
    squeeze_,
    transpose_,
)
from plait.ext.ops.sorting import top_k_
from plait.ext.rules import Elementwise
from plait.ext.sizes import Dim, decide_ge
from plait.ext.types import Aval
from plait.ext.values import Array

from .capacities import Size

__all__ = ["refuse_short", "subject"]

_WINDOWS = (dynamic_slice_, dynamic_update_slice_, gather_, slice_, top_k_)
"""Operations that read a given number of rows.  Those that need one row only are covered by
staging an example without rows."""

_OF_ANY_SIZE = frozenset((
    broadcast_in_dim, convert_, cumsum_, dim_, dot_general, iota_, reduce_and, reduce_or,
    reduce_prod, reduce_sum, squeeze_, transpose_,
))  # fmt: skip
"""Operations that no function refuses an example for, however few rows it has."""

_MOST_ROWS = 1 << 16
"""Greatest number of rows of a window that is looked for where lengths are traced."""

Staged = Callable[[dict[str, int]], Sequence[Aval]]
"""Stages an example with these numbers in place of named sizes, and returns its results' types."""


def refuse_short(
    does: str,
    program: Program,
    vectors: dict[str, Any],
    of_example: Staged,
    roomy: Sequence[bool],
    table: Sequence[Size],
    asked: bool = True,
) -> None:
    """Raise the error of the first example that is too short.

    If lengths are traced, it is raised when the program runs.

    Args:
      does: the transformation, for messages.
      program: the program of one example.
      vectors: the lengths of each named size.
      of_example: stages an example alone.
      roomy: which results have capacities, which differ between examples.
      table: the named sizes.
      asked: whether a question about sizes was left open when the program was staged.
    """
    if not asked and not _may_refuse(program, frozenset(vectors)):
        return
    sizes = {s.name: s for s in table}
    if not all(isinstance(v, Array) for v in vectors.values()):
        _refuse_when_run(does, program, vectors, of_example, roomy, sizes)
        return
    lengths = {name: np.asarray(v) for name, v in vectors.items()}
    names = frozenset(lengths)
    windows = derived(program, ("windows", names), lambda: list(_windows(program, names)))
    for b in _shortest(lengths):
        rows = {name: int(n[b]) for name, n in lengths.items()}
        parts = {name: sizes[name].part(n) for name, n in rows.items()}
        if min(rows.values()) > 1 and all(_fits(e, parts) for e in windows):
            continue
        error = _refusal(program, parts, of_example, roomy)
        if error is not None:
            error.what = f"{subject(does, b, rows, sizes)}: {error.what}"
            raise error


def _may_refuse(program: Program, names: frozenset[str]) -> bool:
    """Return whether an operation of the program may have refused an example of few rows.

    Operations with programs may: a jitted function that was traced before asks no questions."""
    return any(
        e.prim not in _OF_ANY_SIZE
        and Elementwise not in e.prim.traits
        and speaks_of(names, (*e.inputs, *e.outputs), e.params)
        for e in program.eqns
    )


def subject(does: str, b: int, rows: dict[str, Any], sizes: dict[str, Size]) -> str:
    """Return the beginning of a message about an example with these numbers of rows."""
    told = [f"{sizes[name].label or sizes[name].whole} is {n}" for name, n in rows.items()]
    if any(s.label for s in sizes.values()):  # a mask has one example
        return f"{does}, where {', '.join(told)}"
    return f"{does}, example {b}, where {', '.join(told)}"


def _refusal(
    program: Program, sizes: dict[str, int], of_example: Staged, roomy: Sequence[bool]
) -> PlaitError | None:
    """Return the error for an example of these sizes; None if it is accepted."""
    try:
        found = of_example(sizes)
    except PlaitError as error:
        return error
    for t, own, room in zip(program.out_avals, found, roomy):
        if not room and _at(t, sizes).shape != own.shape:
            return ShapeError(
                f"a result of type {own!r} is {t!r} of the others",
                fix="write what does not depend on whether a size is 0 or 1",
            )
    return None


# ---- traced lengths ----------------------------------------------------------------------------


class _Short(NamedTuple):
    """Sizes that are too small: the values of all these names are from `least` to `most`."""

    names: tuple[str, ...]
    least: int
    most: int
    error: PlaitError


def _refuse_when_run(
    does: str,
    program: Program,
    vectors: dict[str, Any],
    of_example: Staged,
    roomy: Sequence[bool],
    sizes: dict[str, Size],
) -> None:
    found = list(_too_short(program, sizes, of_example, roomy))
    if not found:
        return
    lengths = {name: pnp.asarray(v) for name, v in vectors.items()}
    code: Any = -1
    for i, s in reversed(list(enumerate(found))):
        inside: Any = True
        for name in s.names:
            n, size = lengths[name], sizes[name]
            low, high = (size.multiple * k + size.least for k in (s.least, s.most))
            inside = inside & (n >= low) & (n <= high)
        code = pnp.where(inside, np.int32(i), code)
    told = [f"{s.error.what}{f'; {s.error.fix}' if s.error.fix else ''}" for s in found]

    def text(payload: Sequence[Any]) -> str:
        which, *each = map(np.asarray, payload)
        b = int((which >= 0).argmax())
        rows = {name: n[b] for name, n in zip(lengths, each, strict=True)}
        return f"{subject(does, b, rows, sizes)}: {told[which[b]]}"

    place = Place(FailedCheckError, text, 1 + len(lengths), here(), enforced=True)
    check_p.bind((code < 0).all(), code, *lengths.values(), said=place, optional=True)


def _too_short(
    program: Program, sizes: dict[str, Size], of_example: Staged, roomy: Sequence[bool]
) -> Iterator[_Short]:
    """Yield the sizes that the function refuses, whatever the other sizes are; then whether it
    refuses an example without any rows."""
    refused = False
    for name, size in sizes.items():
        first = 0
        for n in _small_sizes(program, size):
            error = _refusal_of_some(program, {name: n}, of_example, roomy)
            if error is not None:
                refused = True
                yield _Short((name,), first, n, error)
            first = n + 1
    if not refused and len(sizes) > 1 and not any(s.least for s in sizes.values()):
        error = _refusal_of_some(program, dict.fromkeys(sizes, 0), of_example, roomy)
        if error is not None:
            yield _Short(tuple(sizes), 0, 0, error)


def _refusal_of_some(
    program: Program, sizes: dict[str, int], of_example: Staged, roomy: Sequence[bool]
) -> PlaitError | None:
    """Return the error for some sizes, unless it may be about the others."""
    try:
        error = _refusal(program, sizes, of_example, roomy)
    except Exception as raised:  # by the user's code, which an example alone would leave by
        return PlaitError(f"{type(raised).__name__}: {raised}")
    return None if isinstance(error, UndecidedDim) else error


def _small_sizes(program: Program, size: Size) -> list[int]:
    """Return the values of a name to stage: for no rows and one, for which functions may take other
    paths, and the greatest one that is too small for a window."""
    windows = list(_windows(program, frozenset((size.name,))))

    def fit(k: int) -> bool:
        return all(_fits(e, {size.name: k}) for e in windows)

    few = [k for k in (0, 1) if size.multiple * k + size.least < 2]
    first = len(few)
    if fit(first):
        return few
    low, high = first, first + 1
    while high < _MOST_ROWS and not fit(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fit(middle) else (middle, high)
    return [*few, low]


# ---- windows -----------------------------------------------------------------------------------


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
        pairs = zip(limits, avals[0].shape, strict=True)
        return all(decide_ge(n, m) is not False for m, n in pairs)
    try:
        e.prim.infer(tuple(avals), {k: _at(v, sizes) for k, v in e.params.items()})
    except UndecidedDim:
        return True  # a question about other sizes
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
