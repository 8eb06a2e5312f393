"""Einstein's notation: sums of products named by subscripts.

Invariant: a subscript that neither a later operand nor the result has is summed as soon as
possible.  Operands are contracted two at a time, in an order found once for each notation and
shapes.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from plait.errors import ArgumentError, TypeRule
from plait.ext.ops import elementwise as el
from plait.ext.ops.contraction import dot_general, normal_precision
from plait.ext.ops.reduction import reduce_sum
from plait.ext.ops.shape import convert, convert_together, expand_dims, squeeze, transpose
from plait.ext.sizes import Dim
from plait.ext.surface import fused, judge_widening, value
from plait.ext.types import BOOL, asked_dtype
from plait.typing import Array, ArrayLike, DTypeLike

from .einsum_advice import corrected
from .masking import unwritten
from .matrices import diagonal

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Plan(NamedTuple):
    """Letters of operands and of the result, axes of operands to leave out, and the order of
    contractions."""

    operands: tuple[str, ...]
    result: str
    dropped: tuple[tuple[int, ...], ...]
    path: tuple[tuple[int, ...], ...]


# ---- reading -------------------------------------------------------------------------------


def _bad(text: str, why: str) -> TypeRule:
    return ArgumentError(f"einsum {text!r}: {why}", fix=_EXAMPLE)


_EXAMPLE = 'write for instance einsum("ij,jk->ik", x, y)'


def _interleaved(args: Sequence[Any]) -> tuple[str, list[Any]]:
    """Convert einsum(x, [0, 1], y, [1, 2], [0, 2]) to notation with letters.

    Any hashable value may name an axis.  Without a list for the result, its axes are sorted by
    name, so names must be comparable then.
    """
    count = len(args) // 2 * 2
    operands, lists = list(args[:count:2]), list(args[1::2][: count // 2])
    result = [args[-1]] if len(args) % 2 else []
    found = dict.fromkeys([i for a in (*lists, *result) for i in a if i is not Ellipsis])
    names = list(found)
    try:
        names.sort()
    except TypeError:
        if not result:
            raise ArgumentError(
                f"einsum: names of axes that have no order, {names}, and no list for the result",
                fix="say which axes the result has: einsum(x, [i, j], [j, i])",
            ) from None
    if len(names) > len(_LETTERS):
        raise ArgumentError(
            f"einsum: {len(names)} axes have names, and {len(_LETTERS)} can have",
            fix="contract fewer operands at once",
        )
    letters = dict(zip(names, _LETTERS))

    def text(labels: Sequence[Any]) -> str:
        return "".join(["..." if i is Ellipsis else letters[i] for i in labels])

    out = "->" + text(result[0]) if result else ""
    return ",".join(map(text, lists)) + out, operands


def _letters(text: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Return notation with a letter for every axis: ellipses get unused letters."""
    body, arrow, out = text.replace(" ", "").partition("->")
    terms = body.split(",")
    if len(terms) != len(ranks):
        raise _bad(text, f"it names {len(terms)} operands, and {len(ranks)} are given")
    free = [c for c in _LETTERS if c not in text]
    most = 0
    for term, rank in zip(terms, ranks):
        named = len(term.replace("...", "", 1))
        if "..." in term:
            most = max(most, rank - named)
        if rank < named or ("..." not in term and rank != named):
            raise _bad(text, f"{term!r} names {named} axes, and the operand has {rank}")
    rest = "".join(free[len(free) - most :])
    spread = lambda t, n: t.replace("...", rest[len(rest) - n :] if n else "")  # noqa: E731
    full = [spread(t, r - len(t.replace("...", "", 1))) for t, r in zip(terms, ranks)]
    for t in full:
        if not all(c.isalnum() for c in t):
            raise _bad(text, "subscripts are letters or digits")
    if arrow:
        result = spread(out, most)
    else:
        every = "".join(full)
        once = sorted([c for c in set(every) if every.count(c) == 1 and c not in rest])
        result = rest + "".join(once)
    if len(set(result)) != len(result):
        raise _bad(text, "the result names an axis twice")
    missing = set(result) - set("".join(full))
    if missing:
        raise _bad(text, f"no operand has the axis {sorted(missing)[0]!r} of the result")
    return full, result


def _sizes(text: str, terms: Sequence[str], shapes: Sequence[tuple]) -> dict[str, Any]:
    sizes: dict[str, Any] = {}
    for term, shape in zip(terms, shapes):
        for c, n in zip(term, shape):
            known = sizes.get(c, 1)
            one = known.__class__ is int and known == 1
            if not one and not (n.__class__ is int and n == 1) and known != n:
                raise _bad(text, f"the axis {c!r} has sizes {known} and {n}")
            if c not in sizes or one:
                sizes[c] = n
    return sizes


@lru_cache(maxsize=1024)
def _plan(
    text: str, shapes: tuple[tuple, ...], optimize: str | tuple[tuple[Any, ...], ...]
) -> Plan:
    try:
        terms, result = _letters(text, [len(s) for s in shapes])
        sizes = _sizes(text, terms, shapes)
    except ArgumentError as e:
        e.fix = corrected(text, shapes)
        raise
    # Axes of size 1 that are paired with longer ones have no effect, so they are dropped.
    gone = [tuple([i for i, (c, n) in enumerate(zip(t, s)) if _stretched(n, sizes[c])])
            for t, s in zip(terms, shapes)]  # fmt: skip
    slim = ["".join([c for i, c in enumerate(t) if i not in g]) for t, g in zip(terms, gone)]
    return Plan(tuple(slim), result, tuple(gone), _path(slim, result, sizes, optimize))


def _stretched(n: int, full: int) -> bool:
    return n.__class__ is int and n == 1 and not (full.__class__ is int and full == 1)


_GUESS = 64
"""The size that symbolic sizes count as in the search for an order."""


def _path(
    terms: Sequence[str],
    result: str,
    sizes: dict[str, Any],
    optimize: str | tuple[tuple[Any, ...], ...],
) -> tuple:
    n = len(terms)
    if isinstance(optimize, tuple):
        return tuple([tuple(p) for p in optimize if not isinstance(p, str)])
    if n < 3 or optimize is False:
        return ((0, 1),) * (n - 1) if n > 1 else ((0,),)
    how = "optimal" if optimize == "optimal" else "greedy"
    size = {c: _GUESS if n.__class__ is Dim else n for c, n in sizes.items()}
    like = [np.broadcast_to(np.zeros(()), [size[c] for c in t]) for t in terms]
    steps, _ = np.einsum_path(",".join(terms) + "->" + result, *like, optimize=how)
    return tuple([tuple(p) for p in steps[1:]])


# ---- contracting ---------------------------------------------------------------------------


class _Term(NamedTuple):
    """An operand and the letters of its axes."""

    x: Any
    letters: str


def _without_repeats(t: _Term) -> _Term:
    """Return the diagonal of axes that share a letter."""
    x, letters = t
    for c in sorted(set(letters)):
        while letters.count(c) > 1:
            i = letters.index(c)
            j = letters.index(c, i + 1)
            x = diagonal(x, 0, i, j)
            letters = (
                letters.replace(c, "")
                if letters.count(c) == 2
                else (letters[:i] + letters[i + 1 : j] + letters[j + 1 :])
            )
            letters += c
    return _Term(x, letters)


def _summed(t: _Term, keep: set[str]) -> _Term:
    """Sum over the letters that occur in this operand only."""
    axes = tuple([i for i, c in enumerate(t.letters) if c not in keep])
    if not axes:
        return t
    return _Term(reduce_sum.bind(t.x, axes=axes), "".join([c for c in t.letters if c in keep]))


def _ordered(t: _Term, letters: str) -> Any:
    return transpose(t.x, tuple([t.letters.index(c) for c in letters]))


def _meet(
    a: _Term, b: _Term, keep: set[str], dot: Callable, dtype: np.dtype, multiplies: bool
) -> _Term:
    a, b = _summed(a, keep | set(b.letters)), _summed(b, keep | set(a.letters))
    common = [c for c in a.letters if c in b.letters]
    shared = [c for c in common if c in keep]
    gone = [c for c in common if c not in keep]
    if multiplies and not gone:
        return _multiplied(a, b, dtype)
    at = lambda t, cs: tuple([t.letters.index(c) for c in cs])  # noqa: E731
    axes = (at(a, gone), at(b, gone)), (at(a, shared), at(b, shared))
    out = value(dot(a.x, b.x, axes, dtype))
    left = [c for c in a.letters if c not in common]
    right = [c for c in b.letters if c not in common]
    return _Term(out, "".join([*shared, *left, *right]))


def _multiplied(a: _Term, b: _Term, dtype: np.dtype) -> _Term:
    """Multiply element by element, when nothing is summed."""
    letters = a.letters + "".join([c for c in b.letters if c not in a.letters])
    new = tuple([i for i, c in enumerate(letters) if c not in a.letters])
    x = expand_dims(a.x, new) if new else a.x
    order = "".join([c for c in letters if c in b.letters])
    y = _ordered(b, order)
    missing = tuple([i for i, c in enumerate(letters) if c not in b.letters])
    y = expand_dims(y, missing) if missing else y
    return _Term(convert(el.mul(x, y), dtype), letters)


def einsum(
    subscripts: object, /, *operands: ArrayLike, out: None = None, optimize: Any = "auto",
    precision: object = None, preferred_element_type: DTypeLike | None = None,
    _dot_general: Callable | None = None,
) -> Array:  # fmt: skip
    """Return sums of products, named by subscripts.

    Args:
      subscripts: "ij,jk->ik": a letter for each axis of each operand and of the result; letters
        that the result lacks are summed.  "..." stands for axes that broadcast, which are also
        summed if the result lacks it (numpy refuses that).  Without "->" the result has the letters
        that occur once, in order.  Or operands and lists of numbers in turn.
      operands: arrays; dtypes are promoted.
      out: must be None.
      optimize: "auto" or "greedy", "optimal", False (from left to right), or a list of pairs.
      precision: None, "default", "high" or "highest", for accelerators.
      preferred_element_type: dtype of the result.
      _dot_general: computes the products of two operands each, in place of `lax.dot_general`, with
        the same arguments.

    Raises TypeRule, naming the letter that does not fit.  As numpy.einsum.

    >>> import numpy as np, plait
    >>> plait.numpy.einsum("ij,ij->i", np.ones((2, 3)), np.ones((2, 3))).tolist()
    [3.0, 3.0]
    """
    unwritten(out)
    if not isinstance(subscripts, str):
        subscripts, given = _interleaved((subscripts, *operands))
    else:
        given = operands
    dtype = None if preferred_element_type is None else asked_dtype(preferred_element_type)
    if _dot_general is not None:
        dot = lambda x, y, axes, kind: _dot_general(  # noqa: E731
            x, y, axes, precision, preferred_element_type=kind
        )
        return _contracted(given, subscripts, _frozen(optimize), dtype, dot)
    return _einsum(
        *given, text=subscripts, optimize=_frozen(optimize), precision=normal_precision(precision),
        dtype=dtype,
    )  # fmt: skip


@fused
def _einsum(
    *operands: Any,
    text: str,
    optimize: str | tuple[tuple[Any, ...], ...],
    precision: str,
    dtype: np.dtype | None,
) -> Any:
    def dot(x: Any, y: Any, axes: Any, kind: Any) -> Any:
        contract, shared = axes
        return dot_general.bind(
            x, y, contract=contract, shared=shared, precision=precision, out_dtype=kind
        )

    return _contracted(operands, text, optimize, dtype, dot, True)


def _contracted(
    operands: Sequence[Any], text: str, optimize: Any, dtype: Any, dot: Callable,
    multiplies: bool = False,
) -> Any:  # fmt: skip
    """Return the sum of products.  `dot` multiplies two operands; with `multiplies`, products
    without a sum are elementwise instead."""
    xs = [value(x) for x in operands]
    if not xs:
        raise _bad(text, "there are no operands")
    plan = _plan(text, tuple([x.aval.shape for x in xs]), optimize)
    if len(xs) > 1:
        xs = convert_together(xs)
        judge_widening(operands, xs[0].aval.dtype)
    dtype = xs[0].aval.dtype if dtype is None else dtype
    # Products of booleans are counted in int32; any nonzero count converts to True.
    truth = xs[0].aval.dtype == BOOL
    if truth:
        xs = [convert(x, np.int32) for x in xs]
    inner = xs[0].aval.dtype if truth else dtype
    xs = [squeeze(x, gone) if gone else x for x, gone in zip(xs, plan.dropped)]
    terms = [_without_repeats(_Term(x, t)) for x, t in zip(xs, plan.operands)]
    for group in plan.path:
        picked = [terms.pop(i) for i in sorted(group, reverse=True)][::-1]
        term = picked[0]
        for i, other in enumerate(picked[1:], 2):
            later = {c for t in (*terms, *picked[i:]) for c in t.letters}
            term = _meet(term, other, later | set(plan.result), dot, inner, multiplies)
        terms.append(term)
    (term,) = terms
    return convert(_ordered(_summed(term, set(plan.result)), plan.result), dtype)


def _frozen(optimize: list[tuple[Any, ...]] | str) -> Any:
    """Return a path as a hashable value."""
    if not isinstance(optimize, list | tuple):
        return optimize
    return tuple([p if isinstance(p, str) else tuple(p) for p in optimize])


def einsum_path(
    subscripts: object, /, *operands: ArrayLike, optimize: Any = "auto"
) -> tuple[list, str]:
    """Return the order in which `einsum` contracts its operands, and a description of it.

    As numpy.einsum_path.

    Raises ArgumentError if the subscripts do not fit the operands.

    >>> import numpy as np, plait
    >>> plait.numpy.einsum_path("ij,jk", np.ones((2, 3)), np.ones((3, 4)))[0]
    ['einsum_path', (0, 1)]
    """
    if not isinstance(subscripts, str):
        subscripts, operands_ = _interleaved((subscripts, *operands))
    else:
        operands_ = operands
    shapes = tuple([value(x).aval.shape for x in operands_])
    plan = _plan(subscripts, shapes, _frozen(optimize))
    text = f"{','.join(plan.operands)}->{plan.result}"
    return ["einsum_path", *plan.path], f"{text} by {' '.join(map(str, plan.path))}"
