"""The conformance kit: checks one primitive against its reference, traits and laws.

    conformance(my_sin, [np.linspace(-1, 1, 5)], np.sin)

The owner of a table supplies its law: entry-point group `plait.laws`, the name of the table, and
the function `law(prim, args, params) -> int`.  It takes numpy arrays and parameters, compares two
sides, and returns the number of comparisons.  It raises AssertionError if they differ, and
Inapplicable if it does not cover them.  Its attribute `applies(prim) -> bool` selects the
primitives that the table concerns.

Invariant: a primitive is judged by numpy and by the laws of installed tables, never by itself.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from plait import jit
from plait.errors import ArgumentError, OperandTypeError, ProgramError
from plait.ext import Aval, PlaitError, Primitive, Program, staged
from plait.ext.lower import module_of
from plait.ext.plugins import declared, load, names
from plait.ext.sizes import symbolic_dims
from plait.ext.trace import as_list
from plait.ext.types import FLOATING, category, dtype_of
from plait.ext.values import from_numpy
from plait.text import parse, same_program, show
from plait.typing import DTypeLike

from .promises import PROMISES
from .report import Checks, Inapplicable, Report, agree

__all__ = ["conformance", "same_text"]

Params = Mapping[str, Any]


def conformance(
    prim: Primitive,
    samples: Sequence[Any],
    reference: Callable[..., Any],
    params: Params | Sequence[Params] | None = None,
    tol: float | None = None,
    *,
    symbolic: Callable[..., Params] | None = None,
    view: Callable[[list[np.ndarray]], list[np.ndarray]] | None = None,
    expected: Mapping[str, str] | None = None,
    at_least: int = 0,
    dtype: DTypeLike | None = None,
) -> Report:
    """Check a primitive: types, values, traits, text, symbolic sizes, and the law of every table.

    Args:
      prim: the primitive.
      samples: operands that the type rule accepts: numpy arrays for a primitive of one operand,
        tuples of them otherwise.  Samples of two to 100 elements reveal the most.
      reference: the same in numpy: `reference(*operands, **params)`, a list for several results.
      params: parameters, one mapping for all samples or one for each.
      tol: relative and absolute tolerance; by default that of the dtypes.
      symbolic: parameters for symbolic sizes of leading axes, `symbolic(*sizes)`; by default those
        of the sample.
      view: results -> their determined part, if the reference may choose among several.
      expected: {check: reason} of checks that should fail.
      at_least: the least number of comparisons, so that checks cannot disappear unnoticed.
      dtype: the floating dtype of all floats among the samples, which may then be Python's; of
        complex numbers, that of their parts.  By default samples are taken as they are.

    Returns:
      A Report with the number of comparisons of each check: "type", "value", "jit", "text",
      "symbolic", "trait <name>" and "law <table>".

    Raises:
      Nonconforming: an AssertionError that describes each failed check.
      TypeRule: `prim` is not a primitive.

    >>> import numpy as np, plait
    >>> from plait.ext.ops.elementwise import neg
    >>> report = plait.testing.conformance(neg, [np.float32([1, -2, 3])], np.negative)
    >>> report.checks["value"], report.checks["trait linear"]
    (1, 1)
    """
    if not isinstance(prim, Primitive):
        raise ArgumentError(
            f"conformance judges a primitive, not {prim!r}",
            fix="give what @primitive made of the type rule",
        )
    checks = Checks(repr(prim), expected)
    count = len(samples)
    each: list[Any] = list(params) if isinstance(params, list | tuple) else [params or {}] * count
    for sample, given in zip(samples, each, strict=True):
        operands = sample if isinstance(sample, tuple | list) else (sample,)
        xs = [_sample(x, dtype) for x in operands]
        _one(checks, prim, xs, dict(given), reference, tol, symbolic, view or (lambda ys: ys))
    return checks.report(at_least)


def _sample(x: object, dtype: DTypeLike | None) -> np.ndarray:
    """Return a sample as an array, floats in `dtype`."""
    x = np.asarray(x)
    if dtype is None or not np.issubdtype(x.dtype, np.inexact):
        return x
    asked = dtype_of(dtype)
    if category(asked) != FLOATING:
        raise OperandTypeError(
            f"conformance: dtype is the floating dtype of samples, and {asked.name} is not one",
            fix='write dtype="float32"',
        )
    if x.dtype.kind == "c":
        asked = np.dtype(np.complex128 if asked.itemsize == 8 else np.complex64)
    return x.astype(asked)


def _one(
    checks: Checks,
    prim: Primitive,
    xs: list[np.ndarray],
    params: dict[str, Any],
    reference: Callable,
    tol: float | None,
    symbolic: Callable | None,
    view: Callable,
) -> None:
    avals = tuple([Aval(x.shape, x.dtype) for x in xs])
    body = lambda *vs: as_list(prim.bind(*vs, **params))  # noqa: E731
    compiled = jit(body)
    eager = lambda *vs: [np.asarray(y) for y in body(*map(from_numpy, vs))]  # noqa: E731
    checks.run("type", lambda: _types(prim, avals, params, eager(*xs)))
    want = as_list(reference(*[x.copy() for x in xs], **params))
    told = "eager, against the reference"
    checks.run("value", lambda: agree(view(eager(*xs)), view(want), tol, told))
    checks.run("jit", lambda: agree(compiled(*xs), eager(*xs), tol, "jit, against eager"))
    checks.run("text", lambda: same_text(staged(body, avals, "sample")))
    checks.run("symbolic", lambda: _symbolic(prim, avals, params, symbolic))
    for trait in prim.traits:
        judge = PROMISES.get(trait)
        if judge is not None:
            name = f"trait {trait.name.rpartition('.')[2]}"
            checks.run(name, lambda judge=judge: judge(eager, xs, params))
    for table in names("plait.laws"):
        for d in declared("plait.laws", table):
            checks.run(f"law {table}", lambda d=d: _law(load(d), prim, xs, params))


def _law(law: Callable, prim: Primitive, xs: list[np.ndarray], params: dict[str, Any]) -> int:
    applies = getattr(law, "applies", None)
    if applies is not None and not applies(prim):
        raise Inapplicable("the table has nothing to say of this primitive")
    return law(prim, [x.copy() for x in xs], dict(params))


def _types(
    prim: Primitive, avals: tuple[Aval, ...], params: dict[str, Any], got: list[np.ndarray]
) -> int:
    want = as_list(prim.infer(avals, params))
    assert len(got) == len(want), f"{len(got)} results, and the type rule says {want}"
    for x, t in zip(got, want):
        have = Aval(x.shape, x.dtype)
        assert have.same_type(t), f"the result is {have!r}, and the type rule says {t!r}"
    return len(want)


def same_text(program: Program) -> None:
    """Check that parsing the text of a program gives the program back."""
    text = show(program)
    try:
        again = parse(text)
    except ProgramError as e:
        if "has no text form" in e.what:
            raise Inapplicable("a parameter has no text form") from None
        raise
    assert same_program(program, again), f"this text is read as another program:\n{text}"
    assert show(again) == text, "the text of what was read is another"


def _symbolic(
    prim: Primitive, avals: tuple[Aval, ...], params: dict[str, Any], given: Callable | None
) -> int:
    """Return avals with symbols for the leading axes, one symbol for equal sizes."""
    sizes = sorted({a.shape[0] for a in avals if a.ndim and a.shape[0] > 1})
    if not sizes:
        raise Inapplicable("no operand has a leading axis of more than one row")
    names = "abcdefgh"[: len(sizes)]
    dims: Any = symbolic_dims(",".join(names))
    named = dict(zip(sizes, dims))
    types = tuple(
        [a.with_shape((named.get(a.shape[0], a.shape[0]), *a.shape[1:])) if a.ndim else a
         for a in avals]
    )  # fmt: skip
    said = params if given is None else dict(given(*dims))
    try:
        program = staged(lambda *vs: as_list(prim.bind(*vs, **said)), types, "symbolic")
    except PlaitError as e:
        if given is not None:
            raise
        raise Inapplicable(f"refused: {e.what}") from None
    known = dict(zip(names, sizes))
    want = as_list(prim.infer(avals, params))
    for got, t in zip(program.out_avals, want, strict=True):
        shape = [d if isinstance(d, int) else d.substitute(known) for d in got.shape]
        assert got.with_shape(shape).same_type(t), f"{got!r} at {known} is not {t!r}"
    module_of(program)  # it must be possible to lower the program
    with suppress(Inapplicable):
        same_text(program)
    return len(want)
