"""`call_tf`: a function of TensorFlow's, called by it, from any program of Plait's.

Invariant: TensorFlow computes it where the program runs, and its derivative too, in TensorFlow's
convention turned into ours.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import plait
from plait.ext.errors import ArgumentError, ShapeError, border
from plait.ext.sizes import is_symbolic
from plait.ext.tree import flatten
from plait.ext.types import Aval, ShapeDtypeStruct, float0
from plait.ext.values import as_value

from .arguments import dtype_of, paths_of, plain_tree
from .library import tensorflow, tf


@border
def call_tf(fun: Callable[..., Any], *, with_gradient: bool = True) -> Callable[..., Any]:
    """A function of TensorFlow's, which TensorFlow computes wherever a program calls it.

    Args:
      fun: a function of tensors, in trees.  What it reads besides, as variables, is read when it is
        called, and has no derivative.
      with_gradient: whether it is differentiated, in reverse mode and to any order, by TensorFlow's
        tapes; this needs plait-autodiff.

    Returns a function of trees of arrays.  In jitted programs it is a call of Python; mapped, it is
    called for one example after the other.  It can not be exported.

    Raises PlaitError if TensorFlow is not installed; when called, ShapeError for sizes that are
    known by name only, OperandTypeError for types that TensorFlow has not, and what `fun` raises.

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
    def called(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = flatten((args, kwargs))
        out_trees: list[Any] = []

        def flat(*tensors: Any) -> list[Any]:
            given, named = tree.unflatten(tensors)
            outs, out_tree = flatten(plain_tree(fun(*given, **named)))
            out_trees[:] = [out_tree]
            return [tf.convert_to_tensor(o) for o in outs]

        values = [as_value(x) for x in leaves]
        _check_sizes([v.aval for v in values], paths_of(args, kwargs))
        outs = _applied(flat, values, with_gradient)
        return out_trees[0].unflatten(outs)

    called.__name__ = getattr(fun, "__name__", type(fun).__name__)
    return called


def _check_sizes(avals: Sequence[Aval], paths: Sequence[str]) -> None:
    for aval, path in zip(avals, paths, strict=True):
        if is_symbolic(aval.shape):
            raise ShapeError(
                f"{path} is {aval!r}, and TensorFlow is called with known sizes only",
                fix="call it with sizes that are numbers",
            )


def _applied(flat: Callable[..., list[Any]], values: Sequence[Any], with_gradient: bool) -> list:
    """The results of a function of flat tensors, for arrays or what stands for them."""
    function = tf.function(flat, autograph=False)
    avals = [v.aval for v in values]
    taken = [tf.TensorSpec(a.shape, dtype_of(a, f"argument {i}")) for i, a in enumerate(avals)]
    made = function.get_concrete_function(*taken)
    outs = [Aval(tuple(o.shape), o.dtype.as_numpy_dtype) for o in made.outputs]
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
        lambda *xs: (_applied(flat, xs, True), xs),
        lambda xs, cts: _cotangents(flat, avals, outs, xs, cts),
    )
    return differentiable(*values)


def _cotangents(
    flat: Callable[..., list[Any]], avals: Sequence[Aval], outs: Sequence[Aval], xs: Any, cts: Any
) -> tuple:
    """Cotangents of the arguments, by a tape; TensorFlow's are the conjugates of ours."""
    ins = [i for i, a in enumerate(avals) if a.inexact]
    inexact = [i for i, o in enumerate(outs) if o.inexact]

    def back(*given: Any) -> list[Any]:
        args, seeds = given[: len(avals)], given[len(avals) :]
        with tf.GradientTape() as tape:
            tape.watch([args[i] for i in ins])
            ys = flat(*args)
        found = tape.gradient(
            [ys[i] for i in inexact], [args[i] for i in ins],
            output_gradients=[_conjugate(s) for s in seeds], unconnected_gradients="zero",
        )  # fmt: skip
        return [_conjugate(tf.convert_to_tensor(g)) for g in found]

    seeds = [as_value(cts[i]) for i in inexact]
    found = dict(zip(ins, _applied(back, [*map(as_value, xs), *seeds], True), strict=True))
    return tuple([found.get(i, np.zeros(a.shape, float0)) for i, a in enumerate(avals)])


def _conjugate(x: Any) -> Any:
    return tf.math.conj(x) if x.dtype.is_complex else x
