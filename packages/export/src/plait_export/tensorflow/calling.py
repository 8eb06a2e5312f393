"""`call_tf`: calls of TensorFlow functions from any program of Plait.

Invariant: TensorFlow computes the function where the program runs, and its derivative, too.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import plait
from plait.ext.errors import ArgumentError, ShapeError, border
from plait.ext.sizes import is_symbolic
from plait.ext.trace import name_of
from plait.ext.tree import flatten
from plait.ext.types import Aval, ShapeDtypeStruct, float0
from plait.ext.values import as_value

from .arguments import dtype_of, paths_of, plain_tree
from .compiled import result_shapes, stablehlo_of
from .library import tensorflow, tf
from .tapes import pullback_of, traced


@border
def call_tf(fun: Callable[..., Any], *, with_gradient: bool = True) -> Callable[..., Any]:
    """Return a function that calls a function of TensorFlow from programs of Plait.

    Args:
      fun: a function of trees of tensors.  Variables that it reads are read when it is called, and
        have no derivative.
      with_gradient: whether TensorFlow's tapes differentiate it, in reverse mode and to any order;
        this needs plait-autodiff.

    Returns a function of trees of arrays.  In jitted programs it is a call of Python; under `vmap`,
    it is called for one example after the other.  It cannot be exported.

    Raises PlaitError if TensorFlow is not installed.  When called, raises ShapeError for symbolic
    sizes, OperandTypeError for types that TensorFlow does not have, and what `fun` raises.

    >>> import numpy as np, plait
    >>> import tensorflow as tf  # doctest: +SKIP
    >>> f = plait.export.tensorflow.call_tf(tf.nn.silu)  # doctest: +SKIP
    >>> plait.jit(plait.grad(f))(np.float32(0))  # doctest: +SKIP
    Array(0.5, dtype=float32)
    """
    tensorflow()
    if not callable(fun):
        raise ArgumentError(f"call_tf needs a function, not {fun!r}", fix="write call_tf(f)(*args)")

    @border
    def called(*args: object, **kwargs: object) -> Any:
        leaves, tree = flatten((args, kwargs))
        out_trees: list[Any] = []

        def flat(*tensors: Any) -> list[Any]:
            given, named = tree.unflatten(tensors)
            outs, out_tree = flatten(plain_tree(fun(*given, **named)))
            out_trees[:] = [out_tree]
            return [tf.convert_to_tensor(o) for o in outs]

        values = [as_value(x) for x in leaves]
        _check_sizes([v.aval for v in values], paths_of(args, kwargs))
        outs = _applied(name_of(fun), flat, values, with_gradient)
        return out_trees[0].unflatten(outs)

    called.__name__ = name_of(fun)
    return called


def _check_sizes(avals: Sequence[Aval], paths: Sequence[str]) -> None:
    for aval, path in zip(avals, paths, strict=True):
        if is_symbolic(aval.shape):
            raise ShapeError(
                f"{path} is {aval!r}, and TensorFlow is called with known sizes only",
                fix="call it with sizes that are numbers",
            )


def _applied(
    name: str, flat: Callable[..., list[Any]], values: Sequence[Any], with_gradient: bool
) -> list:
    """Apply a function of flat tensors to arrays or tracers, and return the results."""
    function = tf.function(flat, autograph=False)
    avals = [v.aval for v in values]
    taken = [tf.TensorSpec(a.shape, dtype_of(a, f"argument {i}")) for i, a in enumerate(avals)]
    made = traced(name, function, taken)
    outs = _types_of(name, flat, made.outputs, taken)
    types = [ShapeDtypeStruct(o.shape, o.dtype) for o in outs]

    def on_host(*xs: Any) -> list[np.ndarray]:
        given = [tf.convert_to_tensor(np.asarray(x), t.dtype) for x, t in zip(xs, taken)]
        return [np.asarray(y) for y in function(*given)]

    def run(*xs: Any) -> list[Any]:
        return plait.pure_callback(on_host, types, *xs) if types else []

    ins = [i for i, a in enumerate(avals) if a.inexact]
    if not with_gradient or not ins or not any(o.inexact for o in outs):
        return run(*values)
    differentiable = plait.custom_vjp(run)
    differentiable.defvjp(
        lambda *xs: (_applied(name, flat, xs, True), xs),
        lambda xs, cts: _cotangents(name, flat, avals, outs, xs, cts),
    )
    return differentiable(*values)


def _types_of(
    name: str, flat: Callable[..., list[Any]], outputs: Sequence[Any], taken: Sequence[Any]
) -> list[Aval]:
    """Return the types of the results; the compiler derives sizes that TensorFlow leaves open."""
    shapes = [tuple(o.shape) for o in outputs if o.shape.is_fully_defined()]
    if len(shapes) < len(outputs):
        code = stablehlo_of(name, tf.function(flat, jit_compile=True, autograph=False), taken)
        shapes = result_shapes(name, code, outputs)
    return [Aval(s, o.dtype.as_numpy_dtype) for s, o in zip(shapes, outputs, strict=True)]


def _cotangents(
    name: str, flat: Callable[..., list[Any]], avals: Sequence[Aval], outs: Sequence[Aval],
    xs: Any, cts: Any,
) -> tuple:  # fmt: skip
    """Return the cotangents of the arguments, by a tape."""
    ins = [i for i, a in enumerate(avals) if a.inexact]
    seeds = [as_value(cts[i]) for i, o in enumerate(outs) if o.inexact]
    back = pullback_of(name, flat, avals, outs)
    found = dict(zip(ins, _applied(name, back, [*map(as_value, xs), *seeds], True), strict=True))
    return tuple([found.get(i, np.zeros(a.shape, float0)) for i, a in enumerate(avals)])
