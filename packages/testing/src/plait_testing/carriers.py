"""Checks of a transformation against every operation that holds programs.

Invariant: the functions are written twice, with operations of Plait and in plain Python; a
transformation must give the same result for both.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from plait import config, events, jit
from plait.errors import UnexpectedTracerError
from plait.ext import MissingRule, Primitive, Tracer, control
from plait.ext.ops.elementwise import add, mul
from plait.ext.trace import Value
from plait.ext.values import as_value, from_numpy
from plait.tree import flatten
from plait.typing import Array, ArrayLike

from .coercions import check_coercions
from .custom_rules import check_custom_rules, plain
from .pieces import by_halves
from .piles import by_elements
from .report import Checks, Inapplicable, Report, agree

__all__ = ["transform_suite"]

Step = Callable[[Any], Any]


class Pair(NamedTuple):
    """A function of one array with operations of Plait, and the same function in plain Python."""

    staged: Step
    plain: Step


def transform_suite(
    api: Callable[[Step], Callable[..., Any]],
    oracle: Callable[[Step], Callable[..., Any]] | None,
    args: Sequence[Any],
    *,
    step: Step | None = None,
    tol: float = 1e-5,
    expected: Mapping[str, str] | None = None,
    at_least: int = 0,
) -> Report:
    """Check a transformation under, over and through jit, calls, branches and loops.

    Args:
      api: the transformation: takes a function of one array that returns an array of the same type;
        returns a function of `args`.
      oracle: the same by other means, for functions in plain Python; None compares with the results
        of `api` for these functions.
      args: trees of numpy arrays or Python scalars, the arguments of the transformed function.
      step: a function of one array that returns one of the same type, made of primitives that the
        transformation has rules for; by default x * 0.5 + 1.
      tol: relative and absolute tolerance.
      expected: {check: reason} of checks that should fail.
      at_least: the least number of comparisons, so that checks cannot disappear unnoticed.

    Returns:
      A Report.  Checks are named after the operation and the place of jit: "scan", "scan, jit
      inside", "scan, jit outside"; also "traced once", "leak" and "missing rule".  "pieces"
      cuts axes, as shard_map does, and "pile" maps over the rows of a pile; "custom_jvp",
      "custom_vjp" and "custom_vmap" lose rules only if the carrier names their kind in `loses`,
      and need plait-autodiff or plait-batching.

    Raises:
      Nonconforming: an AssertionError that describes each failed check.
    """
    checks = Checks("the transformation", expected)
    step = step or (lambda x: add(mul(x, 0.5), 1.0))
    args = [_array(a) for a in args]
    truth = oracle or api
    with config(checks=True):
        for name, pair in _pairs(step).items():
            want = truth(pair.plain)(*args)
            for way, f in _ways(api, name, pair.staged).items():
                checks.run(way, lambda f=f, want=want, way=way: agree(f(*args), want, tol, way))
        checks.run("pieces", lambda: _pieces(api, truth, args, tol))
        for way, f in _ways(api, "pile", by_elements(plain)).items():
            checks.run(way, lambda f=f, way=way: _pile(f, truth, args, tol, way))
        check_custom_rules(checks, api, oracle, args)
        checks.run("coerce", lambda: check_coercions(api, truth, step, _constant, args, tol))
    checks.run("traced once", lambda: _traced_once(api, step, args))
    checks.run("leak", lambda: _leak(api, step, args))
    checks.run("missing rule", lambda: _missing(api, args))
    return checks.report(at_least)


def _ways(api: Callable[..., Any], name: str, f: Step) -> dict[str, Callable[..., Any]]:
    return {name: api(f), f"{name}, jit inside": api(jit(f)), f"{name}, jit outside": jit(api(f))}


def _pieces(api: Callable, truth: Callable, args: Sequence[Any], tol: float) -> int:
    """Check that a function of elements gives the same on pieces along each axis.

    A carrier may refuse pieces that it cannot describe.
    """
    made, reason = 0, ""
    for axis in (0, 1):
        for way, f in _ways(api, f"pieces along {axis}", by_halves(plain, axis)).items():
            try:
                got = f(*args)
            except (Inapplicable, MissingRule) as e:
                reason = reason or str(e)
            else:
                made += agree(got, truth(plain)(*args), tol, way)
    if not made:
        raise Inapplicable(reason)
    return made


def _pile(f: Callable, truth: Callable, args: Sequence[Any], tol: float, way: str) -> int:
    """Check that a function of numbers gives the same on the rows of a pile.

    A carrier may lack rules for the operations that move rows."""
    try:
        got = f(*args)
    except MissingRule as e:
        raise Inapplicable(str(e)) from None
    return agree(got, truth(plain)(*args), tol, way)


def _array(a: ArrayLike) -> Any:
    leaves, tree = flatten(a)
    return tree.unflatten([from_numpy(x) if isinstance(x, np.ndarray) else x for x in leaves])


def _constant(x: Value) -> Any:
    """Return a plain value of the type of `x`, with elements that differ.

    Zeros would hide components that are lost: many carriers give them to plain values.
    """
    t = as_value(x).aval.strong()
    return from_numpy(np.resize(np.array([1, 3, 2]), t.shape).astype(t.dtype))


def _pairs(step: Step) -> dict[str, Pair]:
    """Return the functions; `x` may be lifted, values that they close over are plain."""

    def times(n: int, x: Array) -> Any:
        for _ in range(n):
            x = step(x)
        return x

    def iterates(x: Value) -> Any:
        """Return the sum of x, step(x), step(step(x)), from a plain value."""
        total = _constant(x)
        for _ in range(3):
            total, x = add(total, x), step(x)
        return total

    def summed(x: Value) -> Any:
        rows = control.scan(lambda c, _: (step(c), c), x, None, length=3)[1]
        return control.scan(lambda c, r: (add(c, r), None), _constant(x), rows)[0]

    def joined(yes: bool) -> Pair:
        """Return a branch between `x` and a plain value."""
        return Pair(
            lambda x: control.cond(from_numpy(np.array(yes)), step, _constant, x),
            step if yes else _constant,
        )

    def closing(x: Value) -> Any:
        return jit(lambda c: add(step(x), c))(1.0)

    scan = lambda f, x: control.scan(lambda c, _: (f(c), None), x, None, length=3)[0]  # noqa: E731
    below = lambda s: s[0] < 3  # noqa: E731
    branches = [lambda x: x, step, lambda x: times(2, x)]
    return {
        "step": Pair(step, step),
        "constant": Pair(_constant, _constant),
        "call": Pair(jit(step), step),
        "call in call": Pair(jit(lambda x: step(jit(step)(x))), lambda x: times(2, x)),
        "closure": Pair(closing, lambda x: add(step(x), 1.0)),
        "tree": Pair(lambda x: jit(lambda d: {"b": step(d["a"])})({"a": x})["b"], step),
        "static argument": Pair(
            lambda x: jit(times, static_argnums=0)(2, x), lambda x: times(2, x)
        ),
        "scan": Pair(lambda x: scan(step, x), lambda x: times(3, x)),
        "scan from a plain carry": Pair(
            lambda x: scan(lambda c: add(step(c), x), _constant(x)),
            lambda x: _repeated(lambda c: add(step(c), x), _constant(x)),
        ),
        "scan of rows": Pair(summed, iterates),
        "scan in scan": Pair(lambda x: scan(lambda c: scan(step, c), x), lambda x: times(9, x)),
        "while": Pair(
            lambda x: control.while_loop(below, lambda s: (s[0] + 1, step(s[1])), (0, x))[1],
            lambda x: times(3, x),
        ),
        "fori": Pair(
            lambda x: control.fori_loop(0, 3, lambda i, c: step(c), x), lambda x: times(3, x)
        ),
        "cond": Pair(
            lambda x: control.cond(from_numpy(np.array(True)), step, lambda y: y, x), step
        ),
        "cond with a plain branch": joined(True),
        "cond taking a plain branch": joined(False),
        "switch": Pair(
            lambda x: control.switch(from_numpy(np.array(2, np.int32)), branches, x), branches[2]
        ),
        "cond in scan": Pair(
            lambda x: control.scan(
                lambda c, i: (control.cond(i > 0, step, lambda y: y, c), None),
                x,
                from_numpy(np.arange(3, dtype=np.int32)),
            )[0],
            lambda x: times(2, x),
        ),
    }


def _repeated(f: Step, x: Value) -> Any:
    for _ in range(3):
        x = f(x)
    return x


def _traced_once(api: Callable, step: Step, args: Sequence[Any]) -> None:
    """Check that a second call of the compiled transformation traces nothing."""
    f = jit(api(lambda x: step(x)))
    f(*args)
    with events.counting() as happened:
        f(*args)
    assert not happened["trace"], "a second call with the same types is traced again"


def _leak(api: Callable, step: Step, args: Sequence[Any]) -> None:
    """Check that a lifted value cannot be used after the transformation has ended."""
    kept: list[Any] = []

    def keeping(x: Value) -> Any:
        kept.append(x)
        return step(x)

    api(keeping)(*args)
    if not isinstance(kept[0], Tracer):
        raise Inapplicable("the function is not given a tracer")
    try:
        step(kept[0])
    except UnexpectedTracerError:
        return
    raise AssertionError("a value kept from inside the function can be used afterwards")


unknown = Primitive("testing.unknown", lambda x: x)
"""A primitive without a rule in any table."""


def _missing(api: Callable, args: Sequence[Any]) -> None:
    """Check that a primitive without a rule raises an error with its name, unless a fallback
    exists."""
    try:
        api(lambda x: unknown.bind(x))(*args)
    except MissingRule as e:
        assert unknown.name in str(e), f"the error does not name the primitive: {e}"
        assert e.fix, f"the error does not say what to write: {e}"
    else:
        raise Inapplicable("the transformation has a fallback for primitives without a rule")
