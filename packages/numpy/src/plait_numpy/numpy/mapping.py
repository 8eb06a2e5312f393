"""Functions applied along axes, over several axes, or to each element.

Invariant: the function is staged once, on one row; the core maps it over rows, at once if an
installed plugin can.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from plait import map_axes
from plait.errors import ArgumentError, AxisError, ShapeError
from plait.ext import materialise_at_ground
from plait.ext.ops.shape import broadcast_to, expand_dims, moveaxis, normal_axes, normal_axis
from plait.ext.surface import value
from plait.ext.trace import wraps
from plait.ext.types import BOOL, Aval, broadcast_shapes, judge_ranks
from plait.typing import Array, ArrayLike, Axis


def _over_leading(f: Callable, count: int) -> Callable:
    """Map `f` over `count` leading axes."""
    for _ in range(count):
        f = map_axes(f, parallel=True)
    return f


def apply_along_axis(
    func1d: Callable, axis: int, arr: ArrayLike, *args: object, **kwargs: object
) -> Array:
    """Apply `func1d` to every vector along an axis.

    Args:
      func1d: takes a vector; returns a number or an array, whose axes replace `axis`.
      axis: axis of the vectors.
      arr: one axis at least.
      args, kwargs: further arguments of `func1d`.

    As numpy.apply_along_axis.

    Raises NotAnArrayError if `arr` is not an array, and AxisError if it has no such axis.

    >>> import numpy as np, plait
    >>> plait.numpy.apply_along_axis(lambda v: v[0] + v[-1], 1, np.float32([[1, 2], [3, 4]]))
    Array([3., 7.], dtype=float32)
    """
    x = value(arr)
    n = x.aval.ndim
    at = normal_axis(axis, n)
    run = _over_leading(lambda v: func1d(v, *args, **kwargs), n - 1)
    out = run(moveaxis(x, at, -1))
    new = out.aval.ndim - (n - 1)
    return moveaxis(out, tuple(range(n - 1, n - 1 + new)), tuple(range(at, at + new)))


def apply_over_axes(func: Callable, a: ArrayLike, axes: Axis) -> Array:
    """Apply `func(a, axis)` for one axis after the other; axes that it drops are kept with size 1.

    As numpy.apply_over_axes.

    Raises NotAnArrayError if `a` is not an array, and AxisError if it has no such axis.

    >>> import numpy as np, plait
    >>> plait.numpy.apply_over_axes(plait.numpy.sum, np.ones((2, 3)), [0, 1]).tolist()
    [[6.0]]
    """
    x = value(a)
    n = x.aval.ndim
    if axes is None:
        raise ShapeError("apply_over_axes needs axes", fix="name one or several")
    for axis in normal_axes(axes, n):
        out = value(func(x, axis))
        x = expand_dims(out, axis) if out.aval.ndim == n - 1 else out
        if x.aval.ndim != n:
            raise ShapeError(
                f"apply_over_axes: the function returned {out.aval!r} for an array with {n} axes",
                fix="it must keep the axes, or drop the one it is given",
            )
    return x


_TERM = r"\((?:\w+(?:,\w+)*)?\)"
_SIGNATURE = re.compile(rf"^{_TERM}(?:,{_TERM})*->{_TERM}(?:,{_TERM})*$")


def _terms(signature: str) -> tuple[list[tuple], list[tuple]]:
    """Return the names of the axes of arguments and of results."""
    text = signature.replace(" ", "")
    if not _SIGNATURE.match(text):
        raise ArgumentError(
            f"{signature!r} is not a signature", fix='write for instance "(n,m),(m)->(n)"'
        )
    sides = text.split("->")
    names = [[tuple(filter(None, t.split(","))) for t in re.findall(r"\((.*?)\)", s)]
             for s in sides]  # fmt: skip
    return names[0], names[1]


def vectorize(
    pyfunc: Callable, *, excluded: Any = frozenset(), signature: str | None = None
) -> Callable[..., Any]:
    """Make a function of arrays from one of their elements (or of parts, by `signature`).

    Args:
      pyfunc: takes and returns arrays without axes, or with those that the signature names.
      excluded: numbers or names of arguments to pass unchanged.
      signature: "(n,m),(m)->(n)": the axes of each argument and result that belong to a part.

    The other axes broadcast, and come first in the results.  Without a signature, None is passed
    unchanged.  As numpy.vectorize.

    Raises ArgumentError if `signature` cannot be read, or names the axes of an argument that is
    None.

    >>> import numpy as np, plait
    >>> f = plait.numpy.vectorize(plait.numpy.dot, signature="(n),(n)->()")
    >>> f(np.ones((4, 3), np.float32), np.ones(3, np.float32)).tolist()
    [3.0, 3.0, 3.0, 3.0]
    """
    left_out = set(excluded)
    if not all(isinstance(x, int | str) for x in left_out):
        raise ArgumentError(
            f"vectorize: excluded must have numbers and names of arguments, got {excluded!r}",
            fix="write excluded={0} for the first argument",
        )
    if any(isinstance(x, int) and x < 0 for x in left_out):
        raise ArgumentError(
            f"vectorize: excluded={excluded!r} has negative numbers",
            fix="count arguments from the first one, which is 0",
        )
    core = None if signature is None else _terms(signature)

    @wraps(pyfunc)
    def vectorized(*args: Any, **kwargs: object) -> Any:
        mapped = [i for i, v in enumerate(args) if i not in left_out and v is not None]
        named = [k for k, v in kwargs.items() if k not in left_out and v is not None]
        if core is not None and named:
            raise ArgumentError(
                "vectorize with a signature takes no arguments by name", fix="see numpy"
            )
        given = [args[i] for i in mapped] + [kwargs[k] for k in named]
        xs = [materialise_at_ground(value(x)) for x in given]

        def part(*vs: Any) -> Any:
            full, rest = list(args), dict(kwargs)
            for i, v in zip(mapped, vs):
                full[i] = v
            rest.update(zip(named, vs[len(mapped) :]))
            return pyfunc(*full, **rest)

        parts = [()] * len(xs)
        if core is not None:
            taken = [i for i in range(len(args)) if i not in left_out]
            if len(core[0]) != len(taken):
                raise ArgumentError(
                    f"{len(taken)} arguments for the signature {signature!r}", fix="see there"
                )
            absent = [i for i in taken if args[i] is None]
            if absent:
                raise ArgumentError(
                    f"vectorize: argument {absent[0]} is None, and the signature {signature!r} "
                    "names its axes",
                    fix=f"write excluded={{{absent[0]}}}, and leave it out of the signature",
                )
            parts = [own for i, own in zip(taken, core[0]) if i in mapped]
        return _broadcast_parts(part, xs, parts, None if core is None else core[1])

    return vectorized


def _broadcast_parts(
    part: Callable, xs: Sequence[Any], names: Sequence[tuple], results: list[tuple] | None
) -> Any:
    sizes: dict[str, Any] = {}
    for x, own in zip(xs, names):
        if x.aval.ndim < len(own):
            raise AxisError(
                f"vectorize: {x.aval!r} for an argument with axes {own}", fix="give it these axes"
            )
        for name, n in zip(own, x.aval.shape[x.aval.ndim - len(own) :]):
            if sizes.setdefault(name, n) != n:
                raise AxisError(
                    f"vectorize: the axis {name!r} has sizes {sizes[name]} and {n}",
                    fix="one name has one size",
                )
    leads = [x.aval.shape[: x.aval.ndim - len(own)] for x, own in zip(xs, names)]
    judge_ranks([Aval(own, BOOL) for own in leads], of_user=True)
    lead = broadcast_shapes(leads)
    full = [broadcast_to(x, (*lead, *x.aval.shape[len(own) :])) for x, own in zip(xs, leads)]
    out = _over_leading(part, len(lead))(*full)
    outs = out if isinstance(out, tuple) else (out,)
    if results is not None and len(outs) != len(results):
        raise ArgumentError(
            f"vectorize: the function returned {len(outs)} results, and the signature has "
            f"{len(results)}",
            fix="name the axes of every result after the arrow, as (n),()",
        )
    for o, own in zip(outs, results or ()):
        found = value(o).aval.shape[len(lead) :]
        if len(found) != len(own) or any(sizes.get(n, d) != d for n, d in zip(own, found)):
            raise AxisError(f"vectorize: a result has shape {found} for axes {own}", fix="mend it")
    return out
