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
from plait.ext.errors import ConcretizationError, PlaitError, ShapeError, UndecidedDim, here
from plait.ext.ir import Eqn, Program, derived, dims_of, programs_in, speaks_of
from plait.ext.ops.checks import check_p
from plait.ext.ops.contraction import dot_general
from plait.ext.ops.control_flow import call
from plait.ext.ops.cumulative import cumsum_
from plait.ext.ops.indexing import dynamic_slice_, dynamic_update_slice_, gather_
from plait.ext.ops.reduction import (
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
    reduce_sum,
)
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
from plait.ext.sizes import Dim, decide_eq, decide_ge
from plait.ext.types import Aval
from plait.ext.values import Array

from .capacities import Size, examples_in
from .lengths import are_examples

__all__ = ["refuse_short", "subject"]

_WINDOWS = (dynamic_slice_, dynamic_update_slice_, gather_, slice_, top_k_)
"""Operations that read a given number of rows.  Those that need one row only are covered by
staging an example without rows."""

_OF_ANY_SIZE = frozenset((
    broadcast_in_dim, convert_, cumsum_, dim_, dot_general, iota_, reduce_and, reduce_or,
    reduce_prod, reduce_sum, squeeze_, transpose_,
))  # fmt: skip
"""Operations that no function refuses an example for, however few rows it has."""

_ASKING = frozenset((reduce_max, reduce_min))
"""Operations whose functions ask whether there is a row, if they may refuse an example.

A jitted function that was traced before asks no questions again."""

_MANY = 1 << 30
"""Number of rows for which an undecided question is taken to be answered."""

_MOST_ROWS = 1 << 16
"""Greatest number of rows of a window that is looked for where lengths are traced."""

Questions = Sequence[tuple[Dim, str]]
"""Sizes and their relations to 0."""

Staged = Callable[[dict[str, int]], Sequence[Aval]]
"""Stages an example with these numbers in place of named sizes, and returns its results' types."""


def refuse_short(
    does: str,
    program: Program,
    vectors: dict[str, Any],
    of_example: Staged,
    roomy: Sequence[bool],
    table: Sequence[Size],
    questions: Questions,
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
      questions: those that were left open when the program was staged.
    """
    names = frozenset(vectors)
    doubts = _Doubts(program, names, questions)
    if not doubts.operations and not doubts.questions:
        return
    sizes = {s.name: s for s in table}
    if not all(isinstance(v, Array) for v in vectors.values()):
        _refuse_when_run(does, program, vectors, of_example, roomy, sizes, doubts)
        return
    count = examples_in(table, vectors)
    lengths = {name: np.asarray(v)[:count] for name, v in vectors.items()}
    for b in _shortest(lengths):
        rows = {name: int(n[b]) for name, n in lengths.items()}
        parts = {name: sizes[name].part(n) for name, n in rows.items()}
        few = min(rows.values()) <= 1 and doubts.few(parts)
        if doubts.fit(parts) and not few and not doubts.empty(parts):
            continue
        error = _refusal(program, parts, of_example, roomy)
        if error is not None:
            error.what = f"{subject(does, b, rows, sizes)}: {error.what}"
            raise error


class _Doubts:
    """The parts of an example's program that may refuse an example.

    Attributes:
      operations: whether an operation may have refused an example of few rows, without a question.
      sizes: the sizes of operands of these operations; an example may be refused where one is 0.
    """

    def __init__(self, program: Program, names: frozenset[str], questions: Questions):
        self.program, self.names = program, names
        doubtful = list(_may_refuse(program, names, _ASKING))
        self.operations = bool(doubtful)
        ends = [a.aval.shape for e in doubtful for a in e.inputs]
        self.sizes = {d for shape in ends for d in shape if d.__class__ is Dim}
        self.questions = [q for q in questions if names & q[0].variables]
        self.least = [q for q in self.questions if q[1] == ">="]

    def fit(self, sizes: dict[str, int]) -> bool:
        """Return whether windows are valid, and questions have the usual answers, at these sizes.

        That is so for large sizes only, or for all."""
        return not self.asks(sizes, self.least) and all(
            _fits(e, sizes) for e in self.windows(frozenset(sizes))
        )

    def empty(self, sizes: dict[str, int]) -> list[Dim]:
        """Return the sizes of doubtful operands that are 0, or less, at these sizes."""
        return [d for d in self.sizes if _answer(d - 1, ">=", sizes) is False]

    def asks(self, sizes: dict[str, int], questions: Questions) -> bool:
        """Return whether a question has another answer at these sizes than at large ones."""
        large = dict.fromkeys(sizes, _MANY)
        return any(
            _answer(d, relation, sizes) not in (None, _answer(d, relation, large))
            for d, relation in questions
            if not d.variables.isdisjoint(sizes)
        )

    def windows(self, names: frozenset[str]) -> list[Any]:
        key = "windows", names
        return derived(self.program, key, lambda: list(_windows(self.program, names)))

    def few(self, sizes: dict[str, int]) -> bool:
        """Return whether an example of these sizes, 0 or 1, must be staged."""
        return self.operations or self.asks(sizes, self.questions)


def _answer(d: Dim, relation: str, sizes: dict[str, int]) -> bool | None:
    """Return the answer to a question at these sizes; None if it depends on others."""
    found = d.substitute(sizes)
    return decide_ge(found, 0) if relation == ">=" else decide_eq(found, 0)


def _may_refuse(
    program: Program, names: frozenset[str], asking: frozenset = frozenset()
) -> Iterator[Eqn]:
    """Yield the operations of the program that may have refused an example of few rows.

    Those `asking` may not.  Calls are judged by their programs."""
    for e in program.eqns:
        if e.prim in _OF_ANY_SIZE or e.prim in asking or Elementwise in e.prim.traits:
            continue
        if e.prim is slice_ and _takes_all_rows(e):
            continue
        if e.prim is call:
            for inner in programs_in(e.params):
                yield from _may_refuse(inner, names)
        elif speaks_of(names, (*e.inputs, *e.outputs), e.params):
            yield e
            for inner in programs_in(e.params):
                yield from _may_refuse(inner, names)


def _takes_all_rows(e: Eqn) -> bool:
    """Return whether a slice leaves axes of named sizes whole."""
    shape, starts, limits = e.inputs[0].aval.shape, e.params["starts"], e.params["limits"]
    return all(
        d.__class__ is int or (i == 0 and j == d)
        for d, i, j in zip(shape, starts, limits, strict=True)
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
    doubts: _Doubts,
) -> None:
    found = list(_too_short(program, sizes, of_example, roomy, doubts))
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
    spare = [lengths[name] for name, s in sizes.items() if s.spare]
    if spare:
        code = pnp.where(are_examples(spare), code, np.int32(-1))
    told = [f"{s.error.what}{f'; {s.error.fix}' if s.error.fix else ''}" for s in found]

    def text(payload: Sequence[Any]) -> str:
        which, *each = map(np.asarray, payload)
        b = int((which >= 0).argmax())
        rows = {name: n[b] for name, n in zip(lengths, each, strict=True)}
        return f"{subject(does, b, rows, sizes)}: {told[which[b]]}"

    place = Place(FailedCheckError, text, 1 + len(lengths), here(), enforced=True)
    check_p.bind((code < 0).all(), code, *lengths.values(), said=place, optional=True)


def _too_short(
    program: Program,
    sizes: dict[str, Size],
    of_example: Staged,
    roomy: Sequence[bool],
    doubts: _Doubts,
) -> Iterator[_Short]:
    """Yield the sizes that the function refuses, whatever the other sizes are; then whether it
    refuses an example without any rows."""
    refused = False
    for name, size in sizes.items():
        for least, most in _small_sizes(size, doubts):
            error = _refusal_of_some(program, {name: most}, of_example, roomy)
            if error is not None:
                refused = True
                yield _Short((name,), least, most, error)
    none = dict.fromkeys(sizes, 0)
    if refused or len(sizes) < 2 or any(s.least for s in sizes.values()):
        return
    if doubts.few(none):
        error = _refusal_of_some(program, none, of_example, roomy)
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
    return None if isinstance(error, UndecidedDim | ConcretizationError) else error


def _small_sizes(size: Size, doubts: _Doubts) -> list[tuple[int, int]]:
    """Return ranges of values of a name; the greatest of each range is staged.

    No rows and one row are ranges of their own, since functions may take other paths there.  One
    range ends with the greatest value that is too small for a window, or that answers a question
    differently.  Others end with the greatest value for which an operand has no rows."""
    both = [k for k in (0, 1) if size.multiple * k + size.least < 2]
    found = [(k, k) for k in both if doubts.few({size.name: k})]
    first = len(both)
    small: list[Callable[[int], bool]] = [lambda k: not doubts.fit({size.name: k})]
    small += [lambda k, d=d: d in doubts.empty({size.name: k}) for d in doubts.sizes]
    ends = [_last(first, each) for each in small]
    for end in sorted({n for n in ends if n is not None}):
        found.append((first, end))
        first = end + 1
    return found


def _last(first: int, small: Callable[[int], bool]) -> int | None:
    """Return the greatest number that is small, from `first` on; None if `first` is not."""
    if not small(first):
        return None
    low, high = first, first + 1
    while high < _MOST_ROWS and small(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if small(middle) else (low, middle)
    return low


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


def _fits(e: Eqn, sizes: dict[str, int]) -> bool:
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
