"""Derivatives by TensorFlow's tapes, as functions of flat tensors.

Invariant: cotangents are conjugated between the conventions of both sides; what a tape cannot
differentiate is an error that says so.
"""

from collections.abc import Callable, Sequence
from typing import Any

from plait.ext.errors import MissingRule, PlaitError
from plait.ext.trace import GROUND, use
from plait.ext.types import Aval

from .library import tf


def pullback_of(
    name: str,
    flat: Callable[..., list[Any]],
    avals: Sequence[Aval],
    outs: Sequence[Aval],
    variables: Sequence[Any] = (),
) -> Callable[..., list[Any]]:
    """Return a function of tensors that computes cotangents by a tape.

    It takes the arguments, then the cotangents of the inexact results.  It returns the cotangents
    of the inexact arguments, then those of the inexact variables, which the function reads.  It
    raises MissingRule if the tape refuses the function.
    """
    ins = [i for i, a in enumerate(avals) if a.inexact]
    inexact = [i for i, o in enumerate(outs) if o.inexact]
    held = [v for v in variables if v.dtype.is_floating or v.dtype.is_complex]

    def taped(args: Sequence[Any], seeds: Sequence[Any]) -> list[Any]:
        watched = [*[args[i] for i in ins], *held]
        with tf.GradientTape() as tape:
            tape.watch(watched)
            ys = flat(*args)
        found = tape.gradient(
            [ys[i] for i in inexact], watched, unconnected_gradients="zero",
            output_gradients=[_conjugate(s) for s in seeds],
        )  # fmt: skip
        return [_conjugate(tf.convert_to_tensor(g)) for g in found]

    def back(*given: Any) -> list[Any]:
        try:
            return taped(given[: len(avals)], given[len(avals) :])
        except (LookupError, TypeError, ValueError) as e:
            # An operation has no gradient, or a gradient was not saved.  The function itself was
            # traced before.
            if isinstance(e, PlaitError):
                raise
            raise _underived(name, str(e).splitlines()[0]) from None

    back.__name__ = f"pullback_of_{name}"
    return back


def traced(name: str, function: Any, taken: Sequence[Any]) -> Any:
    """Return the concrete function for tensors of some types.

    Raises MissingRule if it holds a tensor of another graph, as derivatives do that were saved with
    derivatives of their own.
    """
    with use(GROUND):  # functions of Plait's in it are not part of the current trace
        concrete = function.get_concrete_function(*taken)
    if any(map(tf.is_symbolic_tensor, concrete.captured_inputs)):
        raise _underived(name, "its derivative was saved without a derivative of its own")
    return concrete


def _underived(name: str, why: str) -> MissingRule:
    return MissingRule(
        f"TensorFlow does not differentiate {name}: {why}",
        fix="from_tf(f, lose_custom_rules=True) differentiates its operations instead, without its "
        "custom derivatives",
    )


def _conjugate(x: Any) -> Any:
    return tf.math.conj(x) if x.dtype.is_complex else x
