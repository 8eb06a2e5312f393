"""Callbacks: compiled programs call Python functions on the host, all by one primitive.

Invariant: a call with an effect happens exactly as often as in the program, and ordered calls keep
its order.  A call without an effect may be dropped, repeated and moved.  A mapped call is made for
each element in order, or once on all of them if `whole` allows it.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._base.errors import ArgumentError, NotAnArrayError, OperandTypeError
from .._base.jaxlib_api import IrValue
from .._base.lazy import later
from .._base.source import defined_at, where_defined
from .._base.tracebacks import border
from .._core.array import asarray, unmasked
from .._core.interpreter import Value
from .._core.ir import Effect
from .._core.primitive import Primitive
from .._core.staging import admitted
from .._types.avals import Aval, Opaque, canonical
from .._xla import mlir
from .._xla.lower import Emitter, eager_rules, lower_rules
from ..tree import flatten, in_words, map_tree
from ..typing import ArrayLike

__all__ = ["exact", "host"]

DEBUG = Effect("debug", repeatable=True)
DEBUG_ORDERED = Effect("debug", ordered=True, repeatable=True)
IO = Effect("io")
IO_ORDERED = Effect("io", ordered=True)


def _host(*xs: Aval, f: Callable, outs: tuple, effect: Effect | None, whole: str) -> list[Aval]:
    """Call `f(*numpy arrays) -> tuple of numpy arrays` of types `outs`.  `whole` names the way to
    call it once for a mapped axis; "" if there is none."""
    return list(outs)


host = Primitive("core.host", _host, many=True, effect=lambda p: p["effect"])


def exact(f: Callable, outs: tuple) -> Callable:
    """Wrap `f` to check its results against the declared types, which the runtime does not do.

    The wrapper's `instead(*xs)` returns zeros of these types.
    """

    def called(*xs: ArrayLike) -> tuple:
        got = f(*[np.asarray(x) for x in xs])
        got = got if isinstance(got, tuple) else (got,)
        if len(got) != len(outs):
            raise ArgumentError(
                f"the callback {where_defined(f)} promised {len(outs)} results and returned "
                f"{len(got)}",
                where=defined_at(f),
                fix="make result_shape_dtypes say what the function returns",
            )
        arrays = [np.asarray(unmasked(g)) for g in got]
        for g, o in zip(arrays, outs):
            if g.shape != o.shape or not np.can_cast(g.dtype, o.dtype, "same_kind"):
                raise OperandTypeError(
                    f"the callback {where_defined(f)} promised {o!r} and returned "
                    f"{g.dtype}{list(g.shape)}",
                    where=defined_at(f),
                    fix="make result_shape_dtypes say what the function returns",
                )
        return tuple([np.asarray(g, o.dtype, order="C") for g, o in zip(arrays, outs)])

    called.instead = lambda *xs: tuple([np.zeros(o.shape, o.dtype) for o in outs])  # type: ignore[attr-defined]
    return called


def _with_token(f: Callable) -> Callable:
    """Return `f` for an ordered call, which passes a token on."""

    def called(token: Any, *xs: Any) -> tuple:
        return token, *f(*xs)

    called.instead = lambda token, *xs: (token, *f.instead(*xs))  # type: ignore[attr-defined]
    return called


@lower_rules.rule(host)
def _(
    e: Emitter,
    xs: list[IrValue],
    ins: list[Aval],
    types: list[Aval],
    f,
    outs: tuple[Aval, ...],
    effect: Effect | None,
    whole: str,
):
    call = exact(f, outs)
    acts = lambda b, vs: _called(b, vs, ins, types, call, effect)  # noqa: E731
    if effect is not None and e.bound:  # devices that run one program each: `Binder.once`
        return next(iter(e.bound.values())).once(e, xs, ins, types, acts)
    return acts(e, xs)


def _called(
    e,
    xs: Sequence[IrValue],
    ins: list[Aval],
    types: list[Aval],
    call: Callable[..., Any],
    effect: Effect | None,
):
    """Emit the call of a Python function; return its results."""
    order = [effect] if effect is not None and effect.ordered else []
    f = _with_token(call) if order else call
    how = {"has_side_effect": mlir.boolean(effect is not None)}
    o = later("_xla.python_calls").python_call(e, f, xs, ins, types, order, how)
    if effect is not None and not e.bound:
        e.unit.acting.append(o)
    results = list(o.results)
    e.tokens.update(zip(order, results))
    return results[len(order) :]


@eager_rules.rule(host)
def _(args: Sequence[Value], params: dict[str, Any]):
    called = exact(params["f"], params["outs"])
    return [asarray(y) for y in called(*[a.numpy() for a in args])]


def _call(
    f: Callable, shapes: object, args: tuple, kwargs: dict, effect: Effect | None, whole: str
) -> Any:
    leaves, tree = flatten((args, kwargs))
    like, out_tree = flatten(shapes)

    def flat(*xs: ArrayLike) -> tuple:
        a, k = tree.unflatten(xs)
        got, got_tree = flatten(f(*a, **k))
        if got_tree != out_tree:
            raise ArgumentError(
                f"the callback {where_defined(f)} promised {in_words(out_tree)} and "
                f"returned {in_words(got_tree)}",
                where=defined_at(f),
                fix="make result_shape_dtypes say what the function returns",
            )
        return tuple(got)

    flat.__wrapped__ = f  # type: ignore[attr-defined]  # messages name the user's function
    for s in like:
        if not hasattr(s, "shape") or not hasattr(s, "dtype"):
            raise ArgumentError(
                f"a result of a callback is described by {s!r}, which has no shape and dtype",
                fix="give plait.ShapeDtypeStruct(shape, dtype), or an array like it, for each",
            )
    outs = tuple([Aval(tuple(s.shape), canonical(np.dtype(s.dtype))) for s in like])
    return out_tree.unflatten(host(*leaves, f=flat, outs=outs, effect=effect, whole=whole))


_WHOLE = {
    None: "",
    "sequential": "",
    "sequential_unrolled": "",
    "expand_dims": "expand_dims",
    "broadcast_all": "broadcast_all",
    "legacy_vectorized": "legacy_vectorized",
}


@border
def pure_callback(
    callback: Callable,
    result_shape_dtypes: object,
    *args: object,
    sharding: object = None,
    vmap_method: str | None = None,
    vectorized: bool = False,
    **kwargs: object,
) -> Any:
    """Call `callback(*args, **kwargs)`, a pure function, in Python on numpy arrays.

    It may be called more or less often than the program says.

    Args:
      callback: takes and returns trees of numpy arrays.
      result_shape_dtypes: a tree of objects with `.shape` and `.dtype`.
      sharding: None; operands come whole.
      vmap_method: how a mapped call is made.  "sequential" (and None): for each element in order.
        "broadcast_all": once, on operands that all have the mapped axis in front.
        "expand_dims": once; the axis has size 1 in operands that are not mapped.
        "legacy_vectorized": once; operands that are not mapped come without the axis.
      vectorized: the same as `vmap_method="legacy_vectorized"`.

    Raises TypeRule for other methods, and, during the call, for results of other types.

    >>> import numpy as np, plait
    >>> double = lambda x: plait.pure_callback(lambda v: np.asarray(v) * 2, x, x)
    >>> double(plait.numpy.arange(3.0))
    Array([0., 2., 4.], dtype=float32)
    """
    if vmap_method not in _WHOLE:
        raise ArgumentError(
            f"pure_callback: there is no vmap_method {vmap_method!r}",
            fix=f"use one of {', '.join(map(repr, filter(None, _WHOLE)))}",
        )
    if sharding is not None:
        raise ArgumentError(
            "pure_callback: operands come whole, and sharding says otherwise",
            fix="leave it out; in shard_map a callback is given each device's pieces",
        )
    whole = "legacy_vectorized" if vectorized else _WHOLE[vmap_method]
    return _call(callback, result_shape_dtypes, args, kwargs, None, whole)


@border
def io_callback(
    callback: Callable,
    result_shape_dtypes: object,
    *args: object,
    sharding: object = None,
    ordered: bool = False,
    **kwargs: object,
) -> Any:
    """Call `callback(*args, **kwargs)` in Python for its effect.

    It is called exactly as often as the program says and, if `ordered`, in its order.
    `sharding` must be None: operands come whole.

    Raises ArgumentError for a result that is described by neither a shape nor a dtype; when it
    runs, OperandTypeError for a result of another type.

    >>> import plait
    >>> seen = []
    >>> _ = plait.jit(lambda x: plait.io_callback(lambda v: seen.append(float(v)), None, x))(2.0)
    >>> seen
    [2.0]
    """
    if sharding is not None:
        raise ArgumentError(
            "io_callback: operands come whole, and sharding says otherwise", fix="leave it out"
        )
    return _call(callback, result_shape_dtypes, args, kwargs, IO_ORDERED if ordered else IO, "")


@border
def callback(f: Callable, *args: object, ordered: bool = False, **kwargs: object) -> None:
    """Call `f(*args, **kwargs)` for its effect when the arguments are computed.

    Leaves that are not arrays, such as names to print, are passed to `f` as they are.
    """
    leaves, tree = flatten((args, kwargs))
    kept = {i: x for i, x in enumerate(leaves) if not _is_computed(x)}
    computed = [x for i, x in enumerate(leaves) if i not in kept]

    def act(*xs: ArrayLike) -> tuple:
        rest = iter(xs)
        a, k = tree.unflatten([kept[i] if i in kept else next(rest) for i in range(len(leaves))])
        f(*a, **k)
        return ()

    act.__wrapped__ = f  # type: ignore[attr-defined]  # messages name the user's function
    _call(act, (), tuple(computed), {}, DEBUG_ORDERED if ordered else DEBUG, "")


def _is_computed(x: object) -> bool:
    """Return whether a leaf has a value only when the program runs: it is an array."""
    try:
        admitted(x)
    except NotAnArrayError:
        return False
    return True


@border
def debug_print(
    fmt: str, *args: object, ordered: bool = False, file: Any = None, **kwargs: object
) -> None:
    """Print `fmt.format(*args, **kwargs)` when the arguments are computed.

    >>> import plait
    >>> _ = plait.jit(lambda x: plait.debug.print("x = {}", x))(1.0)
    x = 1.0
    """

    def show(*a: Any, **k: object) -> None:
        print(fmt.format(*a, **k), file=file or sys.stdout)

    args, kwargs = map_tree(_shown, (args, kwargs))
    callback(show, *args, ordered=ordered, **kwargs)


def _shown(x: object) -> Any:
    """Return the numbers that a random key holds, to print them, and other values as they are."""
    is_opaque = getattr(x, "dtype", None).__class__ is Opaque
    return later("_ops.opaque").unwrap_.bind(x) if is_opaque else x
