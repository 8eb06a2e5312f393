"""Operations of Plait that TensorFlow has, too: functions of the module that carry their name.

What StableHLO says in many words, an error function or the logarithm of the gamma function, is one
operation again, with TensorFlow's derivative.  Floats that are sorted as integers of the same bits
are sorted as floats, since integers have no derivative.

Invariant: what is taken for a function computes the same, to the accuracy of its type; what stops
derivatives stops them here.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from plait.ext.lower import OPERATION

from ...reader.module import Function
from ..library import tf
from .sorting import in_order

_KNOWN: dict[str, Callable] = {
    "core.erf": lambda x: tf.math.erf(x),
    "core.erfc": lambda x: tf.math.erfc(x),
    "core.lgamma": lambda x: tf.math.lgamma(x),
    "core.digamma": lambda x: tf.math.digamma(x),
    "core.erf_inv": lambda x: tf.math.erfinv(x),
    "core.asinh": lambda x: tf.math.asinh(x),
    "core.acosh": lambda x: tf.math.acosh(x),
    "core.atanh": lambda x: tf.math.atanh(x),
    "core.sinh": lambda x: tf.math.sinh(x),
    "core.cosh": lambda x: tf.math.cosh(x),
    "core.asin": lambda x: tf.math.asin(x),
    "core.acos": lambda x: tf.math.acos(x),
    "core.atan": lambda x: tf.math.atan(x),
}
"""Of one real number."""

_OF_FLOAT32 = frozenset({"core.erf", "core.erfc"})
"""Those that TensorFlow 2.21 computes of float32 only: those of infinite float64 are nan there."""

_PLAIN = frozenset(
    [f"core.{n}" for n in (
        "stop", "relu", "integer_pow", "conj", "argsort", "sort", "top_k", "argmax", "argmin",
        "cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "select_and_scatter_add",
        "reduce_precision", "pow", "threefry2x32", "cbrt", "atan2", "cholesky", "triangular_solve",
        "gather", "broadcast_in_dim", "div", "rem",
    )]
) | frozenset(_KNOWN)  # fmt: skip
"""Operations of which TensorFlow's derivative, of what they consist of, is the derivative."""


def name_of(f: Function) -> str | None:
    """The operation of Plait that a function says it is."""
    found = re.search(r"= ([\w.]+)\(", str(f.attributes.get(OPERATION, "")))
    return found[1] if found else None


def known_again(f: Function, xs: Sequence[Any]) -> list | None:
    """The result of a function that TensorFlow has itself; None for any other.

    Sizes may be given in front of its argument.
    """
    name = name_of(f)
    if name == "core.stop":
        return [tf.stop_gradient(xs[-1])]
    if name == "core.sort" and len(f.body.returned) == 1 and xs[-1].dtype.is_floating:
        axis = re.search(r"axis=(\d+)", str(f.attributes[OPERATION]))
        assert axis is not None
        return [in_order(xs[-1], int(axis[1]))]
    if name not in _KNOWN or xs[-1].dtype not in (tf.float32, tf.float64):
        return None
    if xs[-1].dtype == tf.float64 and name in _OF_FLOAT32:
        return None
    return [_KNOWN[name](xs[-1])]


def differentiable_there(functions: Sequence[Function]) -> bool:
    """Whether TensorFlow differentiates what functions compute as Plait would: they name no
    operation that has a derivative of its own."""
    return {name_of(f) for f in functions} <= {None, *_PLAIN}
