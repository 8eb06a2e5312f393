"""Families of distributions, built from the functions of their standard member.

A continuous family is defined by its log-density at z = (x - loc) / scale and its support.  It may
add any of cdf, logcdf, sf, logsf, ppf and isf.  A discrete family has its log-mass at k - loc.

Invariant: a formula is evaluated inside its support only (elsewhere at a point of it).  So neither
values nor derivatives are nan where the result is 0 or -inf.  nan in, nan out.
"""

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

from plait.errors import OperandTypeError
from plait.ext import Aval, Literal, as_value, current
from plait.ext.ops import elementwise as el
from plait.ext.surface import fused
from plait.ext.trace import GROUND, Value
from plait.ext.types import COMPLEX, FLOATING, default_dtype, promote
from plait.ext.values import scalar_buffer, wrap

from ...refusals import explained

Formula = Callable[..., Any]


class Family:
    """A family of distributions: its functions are attributes, as in scipy.stats."""

    __name__: str

    def __init__(self, name: str, doc: str):
        self.__name__, self.__doc__ = name, doc

    def __repr__(self) -> str:
        return f"<plait.scipy.stats.{self.__name__}>"


# ---- arguments -------------------------------------------------------------------------------


def operands(args: list[Any]) -> list[Any]:
    """Return values in their common floating dtype; Python numbers without loss, as arrays
    without axes where something has to be run."""
    vs = [as_value(a) for a in args]
    avals = [v.aval for v in vs]
    if any(a.category == COMPLEX for a in avals):
        raise OperandTypeError(
            f"distributions are of real numbers, not {avals}", fix="take .real of complex numbers"
        )
    dtype = promote(avals)[0]
    if avals and max(a.category for a in avals) < FLOATING:
        dtype = default_dtype(FLOATING)
    if current() is not GROUND:
        return vs
    return [_solid(v, dtype) if v.__class__ is Literal and not v.aval.ndim else v for v in vs]


def _solid(v: Literal, dtype: Any) -> Any:
    aval = Aval((), dtype)
    return wrap(scalar_buffer(Literal(float(v.value.real), aval)), aval)


def method(name: str, first: str, shapes: list[str], defaults: dict[str, int], body: Formula,
           doc: str) -> Callable:  # fmt: skip
    """Make a function with these parameters; defaults that are not given cost nothing."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(n, kind) for n in (first, *shapes)]
    parameters += [inspect.Parameter(n, kind, default=v) for n, v in defaults.items()]
    signature = inspect.Signature(parameters)
    run = fused(lambda xs, *, given: body(*_spread(el.floating(xs), given)))

    def function(*args: Any, **kwargs: object) -> Any:
        bound = signature.bind(*args, **kwargs).arguments
        given = tuple([n for n in signature.parameters if n in bound])
        return run(tuple(operands([bound[n] for n in given])), given=given)

    def _spread(xs: Sequence[Value], given: tuple) -> list[Any]:
        found = dict(zip(given, xs))
        return [found.get(n) for n in signature.parameters]

    function.__name__ = function.__qualname__ = name
    function.__module__ = str(__package__)  # which holds the family
    function.__doc__ = doc
    function.__signature__ = signature  # type: ignore[attr-defined]
    return explained(function)


# ---- continuous families -----------------------------------------------------------------------

_WHAT = {
    "logpdf": "Logarithm of the density.",
    "pdf": "The density.",
    "cdf": "The probability of at most x.",
    "logcdf": "Logarithm of the probability of at most x.",
    "sf": "The probability of more than x.",
    "logsf": "Logarithm of the probability of more than x.",
    "ppf": "The quantile: the x with cdf(x) = q.",
    "isf": "The x with sf(x) = q.",
    "logpmf": "Logarithm of the probability.",
    "pmf": "The probability.",
    "entropy": "The entropy.",
}


def exp_of(f: Formula) -> Formula:
    return lambda *a: el.exp(f(*a))


def log_of(f: Formula) -> Formula:
    return lambda *a: el.log(f(*a))


def continuous(
    name: str,
    doc: str,
    shapes: str = "",
    support: Formula | None = None,
    inner: Formula | None = None,
    valid: Formula | None = None,
    **formulas: Formula,
) -> Family:
    """Make a family with a location and a scale.

    Args:
      name, doc: name and docstring of the family.
      shapes: names of the shape parameters.
      support: shapes -> (least z or None, greatest z or None); None: all numbers.
      inner: shapes -> a z in the interior of the support; 0.5 by default.
      valid: shapes -> where the distribution is defined; by default where all shapes are positive.
        Elsewhere, and where the scale is not positive, all results are nan.
      formulas: `logpdf(z, *shapes)`, and others; a missing logcdf or logsf is the logarithm of cdf
        or sf.
    """
    names = shapes.split()
    made = Family(name, doc)
    has = dict(formulas)
    for log_, plain in (("logcdf", "cdf"), ("logsf", "sf")):
        if plain in has and log_ not in has:
            has[log_] = log_of(has[plain])
    defaults = {"loc": 0, "scale": 1}
    ends: Formula = support or (lambda *s: (None, None))
    at: Formula = inner or (lambda *s: 0.5)

    def add(key: str, first: str, body: Formula) -> None:
        text = f"{_WHAT[key]}\n\n{doc}"
        body = _where_there_is_one(body, valid or all_positive)
        setattr(made, key, method(f"{name}.{key}", first, names, defaults, body, text))

    logpdf = _density(has["logpdf"], ends, at)
    add("logpdf", "x", logpdf)
    add("pdf", "x", exp_of(logpdf))
    outside = {"cdf": (0.0, 1.0), "sf": (1.0, 0.0), "logcdf": (-math.inf, 0.0),
               "logsf": (0.0, -math.inf)}  # fmt: skip
    for key, (low, high) in outside.items():
        if key in has:
            add(key, "x", _probability(has[key], ends, at, low, high))
    for key in ("ppf", "isf"):
        if key in has:
            add(key, "q", _quantile(has[key]))
    return made


def all_positive(*shapes: Any) -> Any:
    """Return where all of these are positive; True without any."""
    found: Any = True
    for s in shapes:
        one = el.gt(s, 0.0)
        found = one if found is True else el.and_(found, one)
    return found


def _where_there_is_one(f: Formula, valid: Formula) -> Formula:
    def body(x: Value, *rest: Any) -> Any:
        *shapes, _, scale = rest
        out = f(x, *rest)
        if shapes:
            out = el.select(valid(*shapes), out, math.nan)
        return out if scale is None else el.select(el.gt(scale, 0.0), out, math.nan)

    return body


def _standard(x: Value, loc: Value | None, scale: Value | None) -> Any:
    z = x if loc is None else x - loc
    return z if scale is None else z / scale


def _beyond(z: Value, ends: tuple[Any, ...]) -> tuple[Any, Any]:
    """Return (below the support, above it); None for an infinite end."""
    low, high = ends
    below = None if low is None else el.lt(z, low)
    return below, None if high is None else el.gt(z, high)


def _density(formula: Formula, ends: Formula, at: Formula) -> Formula:
    def body(x: Value, *rest: Any) -> Any:
        *shapes, loc, scale = rest
        z = _standard(x, loc, scale)
        out_of = [b for b in _beyond(z, ends(*shapes)) if b is not None]
        for b in out_of:
            z = el.select(b, at(*shapes), z)
        out = formula(z, *shapes)
        out = out if scale is None else out - el.log(scale)
        for b in out_of:
            out = el.select(b, -math.inf, out)
        return out

    return body


def _probability(f: Formula, ends: Formula, at: Formula, low: float, high: float) -> Formula:
    def body(x: Value, *rest: Any) -> Any:
        *shapes, loc, scale = rest
        z = _standard(x, loc, scale)
        below, above = _beyond(z, ends(*shapes))
        for b in (below, above):
            z = z if b is None else el.select(b, at(*shapes), z)
        out = f(z, *shapes)
        out = out if below is None else el.select(below, low, out)
        return out if above is None else el.select(above, high, out)

    return body


def _quantile(formula: Formula) -> Formula:
    def body(q: Value, *rest: Any) -> Any:
        *shapes, loc, scale = rest
        bad = el.or_(el.lt(q, 0.0), el.gt(q, 1.0))
        z = formula(el.select(bad, 0.5, q), *shapes)
        z = z if scale is None else z * scale
        return el.select(bad, math.nan, z if loc is None else z + loc)

    return body


# ---- discrete families -------------------------------------------------------------------------


def discrete(
    name: str,
    doc: str,
    shapes: str,
    support: Formula,
    valid: Formula,
    **formulas: Formula,
) -> Family:
    """Make a family on integers, with a location.

    Args:
      name, doc: name and docstring of the family.
      shapes: names of the shape parameters.
      support: shapes -> (least k, greatest k or None).
      valid: shapes -> where the distribution is defined; elsewhere all results are nan.
      formulas: `logpmf(k, *shapes)`, and optionally `cdf(k, *shapes)`, of integers in the support,
        `ppf(q, *shapes)` and `entropy(*shapes)`.
    """
    names = shapes.split()
    made = Family(name, doc)

    def add(key: str, first: str, rest: list[str], body: Formula) -> None:
        text = f"{_WHAT[key]}\n\n{doc}"
        setattr(made, key, method(f"{name}.{key}", first, rest, {"loc": 0}, body, text))

    def checked(f: Formula) -> Formula:
        return lambda x, *rest: el.select(valid(*rest[:-1]), f(x, *rest), math.nan)

    def logpmf(k: Value, *rest: Any) -> Any:
        *s, loc = rest
        k = k if loc is None else k - loc
        low, high = support(*s)
        out_of = el.or_(el.ne(k, el.floor(k)), el.lt(k, low))
        out_of = out_of if high is None else el.or_(out_of, el.gt(k, high))
        out = formulas["logpmf"](el.select(out_of, low, k), *s)
        return el.select(el.ne(k, k), k, el.select(out_of, -math.inf, out))

    def cdf(k: Value, *rest: Any) -> Any:
        *s, loc = rest
        k = k if loc is None else k - loc
        low, high = support(*s)
        below = el.lt(k, low)
        out = formulas["cdf"](el.floor(el.select(below, low, k)), *s)
        out = el.select(below, 0.0, out)
        return out if high is None else el.select(k >= high, 1.0, out)

    def ppf(q: Value, *rest: Any) -> Any:
        *s, loc = rest
        bad = el.or_(el.lt(q, 0.0), el.gt(q, 1.0))
        k = el.select(bad, math.nan, formulas["ppf"](q, *s))
        return k if loc is None else k + loc

    add("logpmf", "k", names, checked(logpmf))
    add("pmf", "k", names, checked(exp_of(logpmf)))
    if "cdf" in formulas:
        add("cdf", "k", names, checked(cdf))
    if "ppf" in formulas:
        add("ppf", "q", names, checked(ppf))
    if "entropy" in formulas:
        add("entropy", names[0], names[1:], lambda *s: formulas["entropy"](*s[:-1]))
    return made
