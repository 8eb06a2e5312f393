"""Python functions on the host, called from compiled programs: one primitive, several faces.

Invariant: a call with an effect happens exactly as often as the program says, and ordered ones in
its order; one without may be dropped, repeated and moved.  Mapped over an axis it is called for
each element in order, or once on the whole if it says that it can.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import TypeRule
from ..ir import Effect
from ..primitive import Primitive
from ..tree import flatten
from ..types import Aval
from ..values import asarray
from ..xla.execute import eager_rules
from ..xla.lower import lower_rules

DEBUG = Effect("debug", repeatable=True)
DEBUG_ORDERED = Effect("debug", ordered=True, repeatable=True)
IO = Effect("io")
IO_ORDERED = Effect("io", ordered=True)


def _host(*xs: Aval, f: Callable, outs: tuple, effect: Effect | None, whole: bool) -> list[Aval]:
    """Call `f(*numpy arrays) -> tuple of numpy arrays` of types `outs`."""
    return list(outs)


host = Primitive("core.host", _host, many=True, effect=lambda p: p["effect"])


def exact(f: Callable, outs: tuple) -> Callable:
    """`f`, whose results are checked against the promise: the runtime does not."""

    def called(*xs: Any) -> tuple:
        got = f(*[np.asarray(x) for x in xs])
        got = got if isinstance(got, tuple) else (got,)
        if len(got) != len(outs):
            raise TypeRule(f"the callback promised {len(outs)} results and returned {len(got)}")
        arrays = [np.asarray(g) for g in got]
        for g, o in zip(arrays, outs):
            if g.shape != o.shape or not np.can_cast(g.dtype, o.dtype, "same_kind"):
                raise TypeRule(
                    f"the callback promised {o!r} and returned {g.dtype}{list(g.shape)}",
                    fix="make result_shape_dtypes say what the function returns",
                )
        return tuple([np.asarray(g, o.dtype, order="C") for g, o in zip(arrays, outs)])

    return called


@lower_rules.rule(host)
def _(e, xs, ins, types, f, outs, effect, whole):
    return e.python(exact(f, outs), xs, ins, types, effect)


@eager_rules.rule(host)
def _(args, params):
    called = exact(params["f"], params["outs"])
    return [asarray(y) for y in called(*[a.numpy() for a in args])]


def _call(f: Callable, shapes: Any, args: tuple, kwargs: dict, effect: Any, whole: bool) -> Any:
    leaves, tree = flatten((args, kwargs))
    like, out_tree = flatten(shapes)

    def flat(*xs: Any) -> tuple:
        a, k = tree.unflatten(xs)
        got, got_tree = flatten(f(*a, **k))
        if got_tree != out_tree:
            raise TypeRule(f"the callback promised {out_tree} and returned {got_tree}")
        return tuple(got)

    outs = tuple([Aval(tuple(s.shape), np.dtype(s.dtype)) for s in like])
    return out_tree.unflatten(host(*leaves, f=flat, outs=outs, effect=effect, whole=whole))


def pure_callback(
    callback: Callable, result_shape_dtypes: Any, *args: Any, vectorized: bool = False, **kwargs
) -> Any:
    """`callback(*args, **kwargs)` in Python, on numpy arrays: a pure function.

    It may be called more or less often than the program says, as is convenient.

    Args:
      callback: takes and returns trees of numpy arrays.
      result_shape_dtypes: a tree of things with `.shape` and `.dtype`.
      vectorized: whether it can be called once on a stack of arguments, for mapping.
    """
    return _call(callback, result_shape_dtypes, args, kwargs, None, vectorized)


def io_callback(
    callback: Callable, result_shape_dtypes: Any, *args: Any, ordered: bool = False, **kwargs
) -> Any:
    """`callback(*args, **kwargs)` in Python, which acts on the world: exactly as often as the
    program says, and, if `ordered`, in its order."""
    effect = IO_ORDERED if ordered else IO
    return _call(callback, result_shape_dtypes, args, kwargs, effect, False)


def callback(f: Callable, *args: Any, ordered: bool = False, **kwargs: Any) -> None:
    """Call `f(*args, **kwargs)` for its effect when the arguments are computed."""

    def act(*a: Any, **k: Any) -> tuple:
        f(*a, **k)
        return ()

    _call(act, (), args, kwargs, DEBUG_ORDERED if ordered else DEBUG, False)


def debug_print(fmt: str, *args: Any, ordered: bool = False, file: Any = None, **kwargs) -> None:
    """Print `fmt.format(*args, **kwargs)` when the arguments are computed.

    >>> import weft as wf
    >>> _ = wf.jit(lambda x: wf.debug.print("x = {}", x))(1.0)
    x = 1.0
    """

    def show(*a: Any, **k: Any) -> None:
        print(fmt.format(*a, **k), file=file or sys.stdout)

    callback(show, *args, ordered=ordered, **kwargs)
