"""Operations of Plait that TensorFlow has, too, found by the names of the module's functions.

StableHLO expands some operations, such as the error function or the logarithm of the gamma
function.  They become one operation again, with TensorFlow's derivative.  The module sorts floats
as integers of the same bits; here they are sorted as floats, since integers have no derivative.

Invariant: a replacement computes the same, to the accuracy of its type; an operation that stops
derivatives stops them here, too.
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
"""Functions of one real argument."""

_OF_FLOAT32 = frozenset({"core.erf", "core.erfc"})
"""Functions that are used for float32 only: TensorFlow 2.21 returns nan for infinite float64."""

_PLAIN = frozenset(
    [f"core.{n}" for n in (
        "stop", "relu", "integer_pow", "conj", "argsort", "sort", "top_k", "argmax", "argmin",
        "cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "select_and_scatter_add",
        "reduce_precision", "pow", "threefry2x32", "cbrt", "atan2",
        "gather", "broadcast_in_dim", "div", "rem",
    )]
) | frozenset(_KNOWN) | frozenset([
    f"{space}.{n}" for space in ("linalg", "core") for n in ("cholesky", "triangular_solve")
])  # fmt: skip
"""Operations whose derivative TensorFlow finds by differentiating their expansion, also under the
names that they have in artifacts of earlier releases."""


def name_of(f: Function) -> str | None:
    """Return the operation of Plait that a function is named after; None if there is none."""
    found = re.search(r"= ([\w.]+)\(", str(f.attributes.get(OPERATION, "")))
    return found[1] if found else None


def known_again(f: Function, xs: Sequence[Any]) -> list[Any] | None:
    """Return the result of a function that TensorFlow has itself; None for any other.

    Its argument may be preceded by sizes.
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
    """Return whether TensorFlow differentiates functions as Plait would.

    It does if they name no operation with its own derivative rule.
    """
    return {name_of(f) for f in functions} <= {None, *_PLAIN}
